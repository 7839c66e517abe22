"""DX's own measures: the measurement chain, the ladder, completion times by size; by hand where no run is
needed."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import firstlight as fl
import numpy as np
import pytest
from firstlight.claims import measures
from firstlight.claims.claim import Claim, Platform
from firstlight.claims.measures import fct as measures_fct
from firstlight.claims.measures import ladder as measures_ladder
from firstlight.claims.outcome import Outcome
from firstlight.claims.read import find
from firstlight.claims.rows import rows as rows_of
from firstlight.figures import fct, gallery
from firstlight.pages import lines
from firstlight.runs.result import Result

CHAIN = 'name = "c"\nseed = 3\n\n[chain]\nstage = "hardware, token bucket"\npackets = 4000\n'


def named(name: str) -> Claim:
    return next(c for c in find() if c.name == name)


def stages() -> list[str]:
    """The stages that the schema of ``[chain]`` lists."""
    roots = json.loads(fl.core.schema())["anyOf"]
    chain = next(root["properties"]["chain"] for root in roots if "chain" in root["properties"])
    return [stage["const"] for stage in chain["properties"]["stage"]["oneOf"]]


@pytest.fixture
def experiment(tmp_path: Path) -> Path:
    file = tmp_path / "chain.toml"
    file.write_text(CHAIN)
    return file


def test_a_chain_runs_as_any_experiment_does(experiment: Path, tmp_path: Path) -> None:
    first = fl.run(experiment, out=tmp_path / "out")
    again, other = fl.run(experiment), fl.run(experiment, {"seed": 4})
    assert first.digest == again.digest != other.digest
    assert set(first.tables) == {"summary", "chain_rtts", "chain_gaps"}
    # Two windows of eight bursts of 43 packets are left out, and every other packet is answered.
    packets = 4000 - 2 * 8 * 43
    assert len(first.table("chain_rtts")) == packets // 2
    assert len(first.table("chain_gaps")) == packets - 1
    assert 0.5 < first.summary["rtt_deviation_us"] < 2
    assert fl.load(tmp_path / "out").manifest["spec"]["chain"]["packets"] == 4000


def test_calibration_leaves_no_gap_below_the_link_s(experiment: Path) -> None:
    bare = fl.run(experiment).summary
    mended = fl.run(experiment, {"chain.stage": "hardware, token bucket, calibration"}).summary
    assert bare["tx_gaps_below_pct"] > 50 > bare["rx_gaps_below_pct"] - 10 > 20
    assert mended["tx_gaps_below_pct"] == mended["rx_gaps_below_pct"] == 0
    assert mended["rtt_deviation_us"] < bare["rtt_deviation_us"]


def test_the_stages_are_those_of_the_claim() -> None:
    plan = named("dx/fig06-chain")
    assert [c.set["chain.stage"] for c in plan.curves if list(c.set) == ["chain.stage"]] == stages()


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        ({"chain.stage": "kernal"}, "chain.stage: 'kernal' is not one of .*did you mean \"kernel\""),
        ({"chain.packet": 5000}, "chain.packet: .*chain.packets"),
        ({"chain.packets": 10}, "chain.packets: 10 packets is out of range: use 2000 to 10000000"),
        ({"chain.packets": 5e3}, "chain.packets: expected a whole number"),
        ({"seed": -1}, "seed: -1 is out of range"),
        ({"time_scale": 20}, "time_scale"),
        ({"hosts.rate": "1Gbps"}, "hosts.rate"),
    ],
)
def test_a_wrong_chain_is_named(experiment: Path, overrides: dict[str, Any], says: str) -> None:
    with pytest.raises(fl.SpecError, match=says):
        fl.inspect(experiment, overrides)


def test_a_chain_without_a_stage_is_named(experiment: Path) -> None:
    experiment.write_text('name = "c"\n[chain]\npackets = 4000\n')
    with pytest.raises(fl.SpecError, match=r"chain\.stage: missing"):
        fl.run(experiment)


def ladder(*at: float) -> Result:
    """Pings 100 us apart; each adds 1.2 us to the delay of a stream, whose clocks wrap meanwhile."""
    sent = np.arange(0.0, 400.0, 1.2)
    pings = np.array(at or (200.0, 300.0))
    height = np.searchsorted(pings, sent, side="right")
    clock = ((1 << 32) - 150_000 + np.round(sent * 1e3).astype(np.int64)) % (1 << 32)
    received = (clock + 5_000_000 + 1200 * height) % (1 << 32)
    packets = {
        "probe": np.concatenate([np.zeros(len(sent), dtype=int), np.ones(len(pings), dtype=int)]),
        "sent_us": np.concatenate([sent, pings]),
        "sent_clock_ns": np.concatenate([clock, 0 * pings.astype(int)]),
        "received_clock_ns": np.concatenate([received, 0 * pings.astype(int)]),
    }
    times = np.arange(0.0, 400.0)
    waiting = np.searchsorted(pings, times, side="right")
    samples = {"time_us": times, "packets": waiting, "bytes": 1500 * waiting}
    queues = {"name": ["host2.port"], "packets": [334], "utilization": [334 * 1.2 / 400]}
    tables: dict[str, Any] = {"probe_packets": packets, "queue_samples": samples, "queues": queues}
    tables |= {"probes": {"src": [0, 1]}, "summary": {"metric": [], "value": []}}
    return Result({"name": "x", "digest": "0", "measured_us": 400.0}, tables)


def test_a_ladder_by_hand() -> None:
    result = ladder()
    assert measures_ladder.packet_us(result) == pytest.approx(1.2)
    rows = measures_ladder.steps(result)
    assert rows["start_us"].tolist() == [100.0, 200.0, 300.0]
    assert rows["measured_us"].tolist() == pytest.approx([0.0, 1.2, 2.4])
    assert rows["queue_packets"].tolist() == [0.0, 1.0, 2.0]
    assert measures.value(result, "ladder_step_us") == pytest.approx(1.2)
    assert measures.value(result, "ladder_step_packets") == 1.0
    assert measures.value(result, "ladder_error_us") == pytest.approx(0.0, abs=1e-9)
    assert measures.value(result, "ladder_noise_us") == pytest.approx(0.0, abs=1e-9)


def test_a_ladder_needs_two_pings() -> None:
    with pytest.raises(fl.ResultError, match="two pings"):
        measures_ladder.steps(ladder(200.0))


GROUPS = ("0B to 10kB", "10kB to 100kB", "100kB to 10MB", "from 10MB")


def completions(factor: float, groups: int = 4) -> Result:
    """Table ``fct`` of a run whose means are 10 us, 100 us and so on, times a factor."""
    mean = factor * np.array([10.0, 100.0, 1000.0, 10_000.0])
    columns: dict[str, Any] = {c: mean for c in measures_fct.COLUMNS}
    columns |= {
        "workload": ["w"] * 4,
        "group": list(GROUPS),
        "mean_low_us": 0.9 * mean,
        "mean_high_us": 1.1 * mean,
        "p99_us": 3 * mean,
        "p99_low_us": 2 * mean,
        "p99_high_us": [*(5 * mean[:3]), np.nan],
    }
    columns = {name: list(values)[:groups] for name, values in columns.items()}
    return Result({"name": "x", "digest": "0"}, {"fct": columns, "summary": {"metric": [], "value": []}})


def test_completion_times_are_metrics() -> None:
    result = completions(1.0)
    assert measures.value(result, "mean_us: 0B to 10kB") == 10.0
    assert measures.value(result, "p99_us: from 10MB") == 30_000.0
    assert measures.value(result, "p99_high_us: from 10MB") is None
    assert measures.interval(result, "mean_us: 10kB to 100kB") == pytest.approx((90.0, 110.0))
    assert measures.interval(result, "p99_us: 10kB to 100kB") == (200.0, 500.0)
    assert measures.interval(result, "p99_us: from 10MB") is None
    assert measures.interval(result, "goodput_gbps") is None


def test_the_interval_of_a_ratio() -> None:
    exact = (5.0, 5.0)
    assert measures_fct.ratio_interval(10.0, (10.0, 10.0), 5.0, exact) == (2.0, 2.0)
    low, high = measures_fct.ratio_interval(10.0, (9.0, 12.0), 5.0, exact)
    assert (low, high) == pytest.approx((2 / 1.1, 2 * 1.2))
    assert measures_fct.ratio_interval(10.0, (10.0, 10.0), 5.0, (5.0, 6.0)) == pytest.approx((2 / 1.2, 2.0))
    # 30 % above and 40 % below: together 50 %.
    assert measures_fct.ratio_interval(10.0, (10.0, 13.0), 5.0, (3.0, 5.0))[1] == pytest.approx(2 * 1.5)


def outcome(**factors: float) -> Outcome:
    claim = named("dx/fig14-web-search")
    done = Outcome(claim, "quick")
    done.results |= {(Platform(), name, ()): completions(factor) for name, factor in factors.items()}
    return done


def test_ratios_of_completion_times_in_the_text_are_rows() -> None:
    rows = list(rows_of(outcome(DX=1.2, DCTCP=1.0, HULL=1.5)))
    ratios = {r.point: r for r in rows if r.unit == "x"}
    assert ratios["DX / HULL"].ours == pytest.approx(1.2 / 1.5)
    assert ratios["DX / DCTCP"].ours == pytest.approx(1.2)
    assert (ratios["DX / HULL"].paper, ratios["DX / DCTCP"].paper) == (0.923, 1.209)
    # Both means are good for 10 %: 14 % together, a little less downwards.
    both = np.hypot(0.1, 0.1)
    half = 1.2 * ((1 + both) - 1 / (1 + both)) / 2
    assert ratios["DX / DCTCP"].interval == pytest.approx(half)
    means = {(r.curve, r.metric): r for r in rows if r.unit == "us"}
    assert means["DX", "mean_us: from 10MB"].interval == pytest.approx(1200.0)
    assert means["DX", "p99_us: from 10MB"].interval is None
    assert {r.alone for r in rows if r.interval is not None} == {True}
    cells = {line[5] for line in lines.number_lines(rows)}
    assert {"-", "±1200.0*"} < cells
    assert all(cell == "-" or cell.endswith("*") for cell in cells)
    assert lines.number_note(rows) == f"{lines.ALONE}. diff %: of the paper's number."


def test_groups_in_words() -> None:
    assert [fct.words(g) for g in GROUPS] == ["below 10 kB", "10 to 100 kB", "100 kB to 10 MB", "above 10 MB"]


def test_a_group_without_flows_is_left_out() -> None:
    done = outcome(DX=1.0, DCTCP=1.0, HULL=1.0)
    [figure] = gallery.figures(done)
    assert all(f">{fct.words(group)}<" in figure.svg for group in GROUPS)
    done.results = {key: completions(1.0, groups=3) for key in done.results}
    [figure] = gallery.figures(done)
    assert "above 10 MB" not in figure.svg
    assert "100 kB to 10 MB" in figure.svg


def test_the_ladder_is_drawn() -> None:
    claim = named("dx/fig09-ladder")
    done = Outcome(claim, "quick", dict.fromkeys(claim.runs("quick"), ladder()))
    [figure] = gallery.figures(done)
    assert figure.name == "fig09"
    assert all(text in figure.svg for text in ("1 Gb/s", "10 Gb/s", "queue at the switch", "measured, DX"))


def test_the_chain_is_drawn() -> None:
    claim = named("dx/fig06-chain")
    claim = replace(claim, spec=claim.spec.with_overrides({"chain.packets": 4000}))
    done = Outcome(claim, "quick")
    for run in claim.runs("quick"):
        if run[2] == (1,):
            output = fl.core.simulate(claim.point(run, "quick").spec.check())
            done.results[run] = Result(output.manifest, output.tables)
    drawn = {figure.name: figure.svg for figure in gallery.figures(done)}
    says = {"fig06": "Standard deviation of the RTT", "fig07": "Packets received", "fig08": ">RTT (us)<"}
    assert list(drawn) == list(says)
    assert all(text in drawn[name] for name, text in says.items())
