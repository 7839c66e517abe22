"""Rows, agreement and computed curves against numbers worked out by hand; no run is needed."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from firstlight.claims.agreement import Agreement, agreements
from firstlight.claims.claim import Claim, Platform
from firstlight.claims.measures import value
from firstlight.claims.outcome import Outcome
from firstlight.claims.read import find
from firstlight.claims.rows import Row, rows
from firstlight.figures.sequence import optimal
from firstlight.pages import lines
from firstlight.runs.days import days_of_pair
from firstlight.runs.result import Result

WEEK = {
    "index": [0, 1],
    "night_us": [20.0, 20.0],
    "start_us": [20.0, 220.0],
    "end_us": [200.0, 400.0],
    "matching": ["0->2 1->0 2->1", "0->1 1->2 2->0"],
}
SPEC = {
    "measure": {"pair": [0, 1]},
    "hosts": {"mtu": "9kB"},
    "circuit": {"rate": "80Gbps"},
    "packet": {"rate": "10Gbps"},
}


def result_of(**tables: Mapping[str, Any]) -> Result:
    every: dict[str, Mapping[str, Any]] = {"week": WEEK, "summary": {"metric": [], "value": []}, **tables}
    return Result({"name": "x", "digest": "0", "spec": SPEC}, every)


def summary_of(**metrics: float) -> Result:
    return result_of(summary={"metric": list(metrics), "value": list(metrics.values())})


def named(name: str) -> Claim:
    return next(c for c in find() if c.folder.name == name)


def test_days_of_the_pair_repeat_every_week() -> None:
    assert days_of_pair(result_of()) == [(220.0, 400.0), (620.0, 800.0), (1020.0, 1200.0)]


def test_optimal_is_line_rate_except_at_night() -> None:
    at = np.array([0.0, 100.0, 200.0, 220.0, 400.0, 500.0, 800.0])
    day, packet = 180 * 0.625, 200 * 0.078125
    week = packet + day
    expected = [0.0, packet / 2, packet, packet, week, week + packet / 2, 2 * week]
    assert optimal(result_of(flows={"src": [0] * 16}), at) == pytest.approx(expected)


def test_voq_is_averaged_over_days_and_over_their_second_half() -> None:
    time = np.arange(0.0, 1200.0, 10.0)
    late = [any(310 + w <= t < 400 + w for w in (0, 400, 800)) for t in time]
    series = {"time_us": time, "sequence_bytes": time, "voq_packets": np.where(late, 3.0, 16.0)}
    assert value(result_of(series=series), "voq_in_day_packets") == 3.0
    assert value(result_of(series=series), "voq_whole_day_packets") == 9.5


def outcome_of(name: str, offset: float) -> Outcome:
    """A claim whose every number is the reference's plus ``offset`` percent of it."""
    claim = named(name)
    outcome = Outcome(claim, "quick")
    for run in claim.runs("quick"):
        scale = run[0].time_scale
        known = claim.expected("paper" if scale == 20 else "linux", claim.named(run[2]), run[1], scale)
        outcome.results[run] = summary_of(**{k: v * (1 + offset / 100) for k, v in known.items()})
    return outcome


def near(outcome: Outcome) -> dict[tuple[str, str, int], Agreement]:
    found = agreements(outcome, list(rows(outcome)))
    return {(a.platform.hosts, a.against, a.platform.time_scale): a for a in found}


def differences(agreement: Agreement) -> dict[str, float]:
    return {part.name: part.difference for part in agreement.parts}


def test_agreement_is_the_mean_absolute_difference() -> None:
    found = near(outcome_of("fig08-static-voq", 10.0))
    paper = found["simulated", "paper", 20]
    utilization = 0.1 * np.mean([21.25, 31.09, 48.67, 76.74, 99.89, 99.91])
    assert differences(paper) == pytest.approx({"utilization": utilization, "p99": 10.0})
    assert differences(found["simulated", "Linux", 1])["p99"] == pytest.approx(10.0)
    assert ("simulated", "paper", 1) not in found
    assert str(paper).endswith("p99 10.0 %")


def test_figure_3_is_compared_in_exact_time() -> None:
    claim = named("fig03")
    outcome = Outcome(claim, "full")
    for run in claim.runs("full"):
        known = claim.expected("paper", claim.named(run[2]), "", 1)
        outcome.results[run] = summary_of(fct_last_s=known["fct_s"] * 0.8)
    [agreement] = near(outcome).values()
    assert (agreement.against, agreement.platform) == ("the text", Platform())
    assert agreement.numbers == 175
    assert differences(agreement)[""] == pytest.approx(20.0)


def test_a_line_sets_each_scale_beside_its_reference() -> None:
    slow = Row("8a", "16 packets", "circuit_utilization_pct", "%", 48.67, 50.0, 20, 49.37)
    exact = replace(slow, time_scale=1, ours=45.0, linux=46.58)
    [line] = lines.scale_lines([slow, exact])
    assert line[3:] == ("48.7", "49.4", "+0.70", "50.0", "+1.33", "46.6", "45.0", "-1.58")
    real = replace(slow, hosts="linux", ours=47.0, linux=None)
    [line] = lines.scale_lines([real, replace(real, time_scale=1, ours=44.0), slow, exact])
    assert line[3:] == ("48.7", "47.0", "-1.67", "50.0", "+1.33", "44.0", "45.0", "-1.58")


def test_lines_go_by_figure_and_point_and_leave_details_out() -> None:
    claim = named("fig08-static-voq")
    found = list(rows(outcome_of("fig08-static-voq", 0.0)))
    shown = [line[:3] for line in lines.lines_of(claim, found)]
    assert shown[:2] == [
        ("Etalon 8a", "4 packets", "circuit utilization (%)"),
        ("Etalon 8a", "8 packets", "circuit utilization (%)"),
    ]
    assert [line[2] for line in shown[6:9]] == ["p99, all (us)", "p99, circuit (us)", "p99, packet (us)"]
    assert len(shown) == 6 + 18
    assert len(lines.lines_of(claim, found, detail=True)) == 6 + 18 + 18


def test_a_row_without_a_measurement_has_no_number() -> None:
    row = Row("9a", "0 us", "p99_all_us", "us", None, float("12.3456789"), 1)
    assert row.as_dict()["ours"] == 12.3457
    assert row.as_dict()["difference"] is None
    frame = pd.DataFrame([row.as_dict()])
    assert list(frame.columns[:6]) == ["figure", "point", "metric", "paper", "ours", "difference"]


def test_linux_hosts_are_what_simulated_ones_are_compared_with() -> None:
    outcome = outcome_of("fig08-static-voq", 10.0)
    for (platform, curve, at), result in list(outcome.results.items()):
        less = {name: number / 1.1 for name, number in result.summary.items()}
        outcome.results[Platform("linux", platform.time_scale), curve, at] = summary_of(**less)
    every = list(rows(outcome))
    assert {r.hosts for r in every} == {"simulated", "linux"}
    assert all(r.linux is None for r in every if r.hosts == "linux")
    found = near(outcome)
    assert differences(found["linux", "paper", 20])["utilization"] == pytest.approx(0.0)
    assert differences(found["simulated", "Linux", 20])["p99"] == pytest.approx(10.0)
    assert ("linux", "Linux", 1) not in found


def test_gains_are_over_the_base_curve() -> None:
    claim = named("fig10-variants-dynamic")
    outcome = Outcome(claim, "quick")
    for run in claim.runs("quick", ["simulated", "linux"]):
        _, curve, at = run
        value = 40.0 if curve == "static" else 60.0 + claim.axes[0].values.index(at[0])
        outcome.results[run] = summary_of(circuit_utilization_pct=value)
    every = [r for r in rows(outcome) if r.time_scale == 20]
    own = [r for r in every if r.hosts == "linux"]
    assert len(own) == 17 + 17 + 1
    assert (own[-1].point, own[-1].paper, own[-1].ours) == ("mean of 17 points, resized", 36.0, 28.0)
    bbr = next(r for r in own if r.point == "bbr, resized" and r.metric == "circuit_utilization_pct")
    assert (bbr.figure, bbr.paper, bbr.ours) == ("Etalon 10", 43.0, 60.0)
    ours = next(r for r in every if r.point == "mean of 17 points, resized")
    assert (ours.hosts, ours.paper, ours.linux) == ("simulated", 36.0, 28.0)


def test_a_fact_of_one_point_is_the_number_of_that_row() -> None:
    outcome = Outcome(named("retcp-static-voq"), "quick")
    for run in outcome.claim.runs("quick"):
        outcome.results[run] = summary_of(circuit_utilization_pct=50.0 if run[1] == "CUBIC" else 53.0)
    found = {r.point: r for r in rows(outcome) if r.time_scale == 20}
    assert len(found) == 6 + 1
    assert (found["32 packets, reTCP"].ours, found["32 packets, reTCP"].paper) == (3.0, 6.0)
    assert found["4 packets, reTCP"].paper is None
    assert (found["mean of 6 points, reTCP"].ours, found["mean of 6 points, reTCP"].paper) == (3.0, 2.65)
