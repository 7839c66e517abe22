"""The figure of the rates that QCN limits, in the report of a run."""

from pathlib import Path

from firstlight.figures.single import MOST_CURVES, rate_limiters_figure
from firstlight.pages.report import write
from firstlight.runs.result import Result

CHANGES = {
    "time_us": [100.0, 150.0, 200.0, 300.0],
    "host": [0, 1, 0, 1],
    "to": [7, 6, 7, 6],
    "flow": [0, 1, 0, -1],
    "current_mbps": [5000.0, 2500.0, 7500.0, 100.0],
    "target_mbps": [10000.0, 5000.0, 10000.0, 200.0],
}


def told(columns: dict[str, list[float]] | None = None, end: float = 1000.0) -> Result:
    tables = {"summary": {"metric": ["x"], "unit": ["s"], "value": [1.0], "meaning": ["y"]}}
    manifest = {
        "format": 1,
        "name": "x",
        "digest": "0",
        "seed": 1,
        "time_scale": 1,
        "elapsed_us": end,
        "warnings": [],
        "version": "1",
    }
    return Result(manifest, {**tables, "rate_limiters": {**CHANGES, **(columns or {})}})


def test_each_flow_has_its_curve() -> None:
    figure = rate_limiters_figure(told())
    assert "3 of 3" in figure.caption
    assert all(name in figure.svg for name in ("host0, flow 0", "host1, flow 1", "host1, datagrams to host6"))


def test_datagrams_to_other_hosts_have_their_own_curves() -> None:
    figure = rate_limiters_figure(told({"flow": [-1, -1, -1, -1], "host": [1, 1, 1, 1]}))
    assert "2 of 2" in figure.caption
    assert all(f"datagrams to host{to}" in figure.svg for to in (6, 7))


def test_time_ends_soon_after_the_last_cut() -> None:
    late = {"time_us": [1e5, 1.5e5, 2e5, 3e5]}
    assert "until 600 ms" in rate_limiters_figure(told(late, end=1e6)).caption
    assert "until" not in rate_limiters_figure(told(late, end=5e5)).caption
    recovers = {"flow": [0.0, 1.0, 0.0, 1.0], "current_mbps": [5000.0, 2500.0, 7500.0, 2600.0]}
    assert "until 300 ms" in rate_limiters_figure(told(late | recovers, end=1e6)).caption


def test_many_flows_are_cut_to_those_that_changed_most() -> None:
    rows = [flow for flow in range(20) for _ in range(flow + 1)]
    many: dict[str, list[float]] = {name: [1.0] * len(rows) for name in CHANGES}
    many |= {"flow": [*rows], "host": [*rows]}
    figure = rate_limiters_figure(told(many))
    assert f"{MOST_CURVES} of 20" in figure.caption
    assert "host13, flow 13" in figure.svg and "host12, flow 12" not in figure.svg


def test_a_report_has_the_figure_of_rate_limiters(tmp_path: Path) -> None:
    stored = told().save(tmp_path / "run")
    assert stored.path is not None
    assert "Rates of flows that QCN limits" in write(stored.path).read_text()
