"""The figure of the rates that QCN limits, in the report of a run."""

from pathlib import Path

from firstlight.figures.single import MOST_CURVES, rate_limiters_figure
from firstlight.report import write
from firstlight.result import Result

CHANGES = {
    "time_us": [100.0, 150.0, 200.0, 300.0],
    "host": [0, 1, 0, 1],
    "flow": [0, 1, 0, -1],
    "current_mbps": [5000.0, 2500.0, 7500.0, 100.0],
    "target_mbps": [10000.0, 5000.0, 10000.0, 200.0],
}


def told(**columns: list[float]) -> Result:
    tables = {"summary": {"metric": ["x"], "unit": ["s"], "value": [1.0], "meaning": ["y"]}}
    manifest = {
        "format": 1,
        "name": "x",
        "digest": "0",
        "seed": 1,
        "time_scale": 1,
        "elapsed_us": 1000.0,
        "warnings": [],
        "version": "1",
    }
    return Result(manifest, {**tables, "rate_limiters": {**CHANGES, **columns}})


def test_each_flow_has_its_curve() -> None:
    figure = rate_limiters_figure(told())
    assert "3 of 3" in figure.caption
    assert all(name in figure.svg for name in ("host0, flow 0", "host1, flow 1", "host1, flow -1"))


def test_many_flows_are_cut_to_those_that_changed_most() -> None:
    rows = [flow for flow in range(20) for _ in range(flow + 1)]
    many: dict[str, list[float]] = {name: [1.0] * len(rows) for name in CHANGES}
    many |= {"flow": [*rows], "host": [*rows]}
    figure = rate_limiters_figure(told(**many))
    assert f"{MOST_CURVES} of 20" in figure.caption
    assert "host19, flow 19" in figure.svg and "host11, flow 11" not in figure.svg


def test_a_report_has_it(tmp_path: Path) -> None:
    stored = told().save(tmp_path / "run")
    assert stored.path is not None
    assert "Rates of flows that QCN limits" in write(stored.path).read_text()
