"""Table 1 from a capture: times and rates are those of the packets, whatever the experiment says."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from firstlight.claims.measures import value
from firstlight.claims.measures.captured import ENHANCED_PACKET, HEADER
from firstlight.runs.result import CAPTURE, Result

SPEC: dict[str, Any] = {
    "hosts": {"mtu": "9000B"},
    "packet": {"rate": "10Gbps", "delay": "5us"},
    "circuit": {"rate": "80Gbps", "delay": "30us"},
    "warmup": "0s",
}
WEEK = 400.0


def capture_of(folder: Path, night: float, day: float, circuit_gap: float, packet_gap: float) -> Result:
    """A result with a capture of six weeks: the packet network until the night, then the circuit, whose last
    packets the packet network's first one overtakes. Small packets are among them."""
    times: list[float] = []
    for week in np.arange(6) * WEEK:
        night_begins = week + WEEK - day - night
        times += list(np.arange(week + packet_gap, night_begins + 1e-6, packet_gap) + 17.2 - 7.2)
        trains = night_begins + night + 30.0 + circuit_gap * np.arange(1, round(day / circuit_gap) + 1)
        times += list(trains)
        times.append(week + WEEK + 10.3)
    folder.mkdir()
    blocks = []
    for time, size in sorted([(t, 9000) for t in times] + [(t + 0.05, 52) for t in times[::3]]):
        stamp = round(time * 1e3)
        when = stamp >> 32, stamp & 0xFFFFFFFF
        blocks.append(HEADER.pack(ENHANCED_PACKET, 32, 0, *when, 0, size) + bytes(4))
    (folder / CAPTURE).write_bytes(b"".join(blocks))
    return Result({"digest": "0", "spec": SPEC}, {"summary": {"metric": [], "value": []}}, path=folder)


@pytest.mark.parametrize(
    ("night", "day", "circuit_gap", "packet_gap"), [(20.0, 180.0, 0.9, 7.2), (40.0, 90.0, 0.9, 9.0)]
)
def test_times_and_rates_are_those_of_the_capture(
    tmp_path: Path, night: float, day: float, circuit_gap: float, packet_gap: float
) -> None:
    result = capture_of(tmp_path / "r", night, day, circuit_gap, packet_gap)
    found = {name: value(result, f"captured_{name}") for name in ("day_us", "circuit_rate_gbps")}
    assert found["day_us"] == pytest.approx(day, abs=0.01)
    assert found["circuit_rate_gbps"] == pytest.approx(72 / circuit_gap, rel=1e-3)
    assert value(result, "captured_packet_rate_gbps") == pytest.approx(72 / packet_gap, rel=1e-3)


def test_a_night_is_the_silence_less_what_the_paths_differ_by(tmp_path: Path) -> None:
    for night in (20.0, 40.0):
        result = capture_of(tmp_path / f"{night:g}", night, 180.0, 0.9, 4.0)
        silence = night + 0.9 + 30.0 - 10.0
        expected = silence - (30.0 + 0.9) + (10.0 + 7.2)
        assert value(result, "captured_night_us") == pytest.approx(expected, abs=0.01)
