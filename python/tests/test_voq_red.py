"""RED on VOQs, as a user sets it."""

from pathlib import Path

import firstlight as fl
import pytest

PAIR = Path(__file__).resolve().parents[2] / "crates/lab/tests/specs/pair.toml"
SHORT = {"duration": "60ms", "warmup": "10ms", "tcp.ecn": True, "voq.small": 60}


def run(low: int, high: int, **more: object) -> fl.Result:
    keys = {"voq.red.min": low, "voq.red.max": high, "voq.red.weight": 1.0}
    return fl.run(PAIR, {**SHORT, **keys, **{f"voq.red.{key}": value for key, value in more.items()}})


def test_an_earlier_band_keeps_queues_shorter() -> None:
    plain, late, early = fl.run(PAIR, SHORT), run(30, 59), run(5, 15)
    assert plain.summary["marked_packets"] == 0
    assert min(late.summary["marked_packets"], early.summary["marked_packets"]) > 0
    waiting = [result.series["voq_packets"].mean() for result in (early, late, plain)]
    assert waiting == sorted(waiting)
    # Beyond its upper threshold RED drops what comes.
    assert waiting[0] < 15 < waiting[1]
    gentle = run(5, 15, gentle=True).series["voq_packets"].mean()
    assert waiting[0] < gentle


def test_a_band_beyond_the_queue_gives_a_warning() -> None:
    result = run(60, 90)
    assert result.summary["marked_packets"] == 0
    told = "voq.red.min = 60 is never exceeded: the queue holds 60 packets"
    assert told in result.manifest["warnings"]


def test_a_queue_marks_in_one_way() -> None:
    with pytest.raises(fl.SpecError, match=r"voq\.red: there is voq\.ecn_small already"):
        fl.run(PAIR, {**SHORT, "voq.ecn_small": 9, "voq.red.min": 4, "voq.red.max": 12})
