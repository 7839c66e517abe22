"""Rows, agreement and computed curves against numbers worked out by hand; no run is needed."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from firstlight.claims import agreement
from firstlight.claims import claim as claims
from firstlight.claims.verdict import Outcome, Row
from firstlight.figures.sequence import optimal
from firstlight.pages import tables
from firstlight.runs.days import days_of_pair, emulated, mean_voq_in_day
from firstlight.runs.result import Result

WEEK = {
    "index": [0, 1],
    "night_us": [20.0, 20.0],
    "start_us": [20.0, 220.0],
    "end_us": [200.0, 400.0],
    "matching": ["0->2 1->0 2->1", "0->1 1->2 2->0"],
}


def result_of(**tables: dict[str, Any]) -> Result:
    return Result(
        {"name": "x", "digest": "0", "spec": {"measure": {"pair": [0, 1]}}}, {"week": WEEK, **tables}
    )


def test_the_pair_s_days_are_found_in_every_week() -> None:
    assert days_of_pair(result_of()) == [(220.0, 400.0), (620.0, 800.0), (1020.0, 1200.0)]


def test_optimal_is_line_rate_but_at_night() -> None:
    at = np.array([0.0, 100.0, 200.0, 220.0, 400.0, 500.0, 800.0])
    day, packet = 180 * 0.625, 200 * 0.078125
    expected = [
        0.0,
        packet / 2,
        packet,
        packet,
        packet + day,
        packet + day + 100 * 0.078125,
        2 * (packet + day),
    ]
    assert optimal(result_of(), at) == pytest.approx(expected)


def test_the_voq_is_averaged_over_the_days_second_half() -> None:
    time = np.arange(0.0, 1200.0, 10.0)
    late = [any(310 + w <= t < 400 + w for w in (0, 400, 800)) for t in time]
    series = {"time_us": time, "sequence_bytes": time, "voq_packets": np.where(late, 3.0, 16.0)}
    assert mean_voq_in_day(result_of(series=series)) == 3.0


def outcome_of(name: str, offset: float) -> Outcome:
    """A claim whose every number is the reference's plus ``offset`` percent of it."""
    claim = next(c for c in claims.find() if c.folder.name == name)
    outcome = Outcome(claim, "quick")
    for curve in claim.curves:
        for at in claim.ats("quick"):
            known = (
                claim.expected("paper", at, 20) if curve.time_scale == 20 else claim.expected("linux", at, 1)
            )
            summary = {"metric": list(known), "value": [v * (1 + offset / 100) for v in known.values()]}
            outcome.results["simulated", curve.name, at] = result_of(summary=summary)
    return outcome


def test_agreement_is_the_mean_absolute_difference() -> None:
    outcome = outcome_of("fig08-static-voq", 10.0)
    near = {(a.against, a.time_scale): a for a in agreement.agreements(outcome, outcome.rows())}
    paper = near["paper", 20]
    assert paper.utilization == pytest.approx(0.1 * np.mean([21.25, 31.09, 48.67, 76.74, 99.89, 99.91]))
    assert paper.tail == pytest.approx(10.0)
    assert paper.met is False
    assert near["Linux", 1].tail == pytest.approx(10.0)
    assert ("paper", 1) not in near
    assert "aim missed" in tables.agreement_line(paper)


def test_aims_are_met_within_their_bounds() -> None:
    for offset, met in ((4.0, True), (-4.0, True), (9.0, False), (-9.0, False)):
        outcome = outcome_of("fig11-dynamic-voq-retcp", offset)
        found = agreement.agreements(outcome, outcome.rows())
        assert [a.met for a in found if a.against == "paper"] == [met]


def test_figure_3_is_compared_in_exact_time() -> None:
    claim = next(c for c in claims.find() if c.folder.name == "fig03")
    outcome = Outcome(claim, "full")
    for at in claim.ats("full"):
        known = claim.expected("paper", at, 1)
        outcome.results["simulated", "exact time", at] = result_of(
            summary={"metric": ["fct_last_s"], "value": [known["fct_s"] * 0.8]}
        )
    [near] = agreement.agreements(outcome, outcome.rows())
    assert (near.against, near.time_scale, near.met) == ("paper", 1, None)
    assert near.fct == pytest.approx(20.0)
    assert len(outcome.rows()) == 175


def test_headline_ratios_are_the_paper_s() -> None:
    names = ("fig08-static-voq", "fig09-dynamic-voq", "fig11-dynamic-voq-retcp")
    rows = agreement.headline([outcome_of(name, 0.0) for name in names])
    papers = [round(row.paper, 2) for row in rows if row.time_scale == 20 and row.paper]
    assert papers == [1.87, 2.06, 2.33, 1.91, 1.06, 1.2]
    assert all(row.difference == pytest.approx(0.0) for row in rows if row.time_scale == 20)
    assert agreement.headline([outcome_of(names[0], 0.0)]) == []


def test_a_line_sets_each_scale_beside_its_reference() -> None:
    slow = Row("8a", "16 packets", "circuit_utilization_pct", "%", 48.67, 50.0, 20, 49.37)
    exact = replace(slow, time_scale=1, ours=45.0, linux=46.58)
    [line] = tables.verdict_lines([slow, exact])
    assert line[3:] == ("48.7", "49.4", "+0.70", "50.0", "+1.33", "46.6", "45.0", "-1.58")
    [line] = tables.verdict_lines([replace(exact, linux=None)])
    assert line[3:] == ("48.7", "-", "-", "-", "-", "-", "45.0", "-3.67")
    real = replace(slow, hosts="linux", ours=47.0, linux=None)
    [line] = tables.verdict_lines([real, replace(real, time_scale=1, ours=44.0), slow, exact])
    assert line[3:] == ("48.7", "47.0", "-1.67", "50.0", "+1.33", "44.0", "45.0", "-1.58")


def test_what_was_not_measured_is_no_number() -> None:
    row = Row("9a", "0 us", "p99_all_us", "us", None, float("12.3456789"), 1)
    assert row.as_dict()["ours"] == 12.3457
    assert row.as_dict()["difference"] is None
    frame = pd.DataFrame([row.as_dict()])
    assert list(frame.columns[:6]) == ["figure", "point", "metric", "paper", "ours", "difference"]


def test_linux_hosts_are_what_simulated_ones_are_compared_with() -> None:
    outcome = outcome_of("fig08-static-voq", 10.0)
    for (_, curve, at), result in list(outcome.results.items()):
        summary = {
            "metric": result.table("summary")["metric"],
            "value": result.table("summary")["value"] / 1.1,
        }
        outcome.results["linux", curve, at] = result_of(summary=summary)
    rows = outcome.rows()
    assert {r.hosts for r in rows} == {"simulated", "linux"}
    assert all(r.linux is None for r in rows if r.hosts == "linux")
    near = {(a.hosts, a.against, a.time_scale): a for a in agreement.agreements(outcome, rows)}
    assert near["linux", "paper", 20].utilization == pytest.approx(0.0)
    assert near["linux", "paper", 20].met is True
    assert near["simulated", "Linux", 20].tail == pytest.approx(10.0)
    assert ("linux", "Linux", 1) not in near


def test_aims_differ_by_hosts() -> None:
    outcome = outcome_of("fig08-static-voq", 6.0)
    outcome.results |= {("linux", c, at): r for (_, c, at), r in outcome.results.items()}
    met = {(a.hosts, a.against): a.met for a in agreement.agreements(outcome, outcome.rows())}
    assert met["simulated", "paper"] is True
    assert met["linux", "paper"] is False, "p99 is to be within 5 %"


def test_gains_of_variants_are_over_their_own_base() -> None:
    claim = next(c for c in claims.find() if c.folder.name == "fig10-variants-dynamic")
    outcome = Outcome(claim, "quick")
    for i, at in enumerate(claim.ats("quick", "linux")):
        for curve in claim.curves:
            value = 40.0 if curve.variant == "base" else 60.0 + i
            summary = {"metric": ["circuit_utilization_pct"], "value": [value]}
            outcome.results["linux", curve.name, at] = result_of(summary=summary)
    rows = outcome.rows()
    assert len(rows) == 2 * (17 + 1)
    [mean] = [r for r in rows if r.metric == "utilization_gain" and r.time_scale == 20]
    assert (mean.point, mean.paper, mean.ours) == ("mean of 17 variants", 36.0, 28.0)
    bbr = next(r for r in rows if r.point == "bbr" and r.time_scale == 20)
    assert (bbr.figure, bbr.paper, bbr.ours) == ("10", 43.0, 60.0)


def test_rates_are_packets_by_the_time_that_they_had() -> None:
    result = result_of(summary={"metric": ["circuit_packets", "packet_packets"], "value": [2000.0, 277.0]})
    result.manifest["spec"]["hosts"] = {"mtu": "9kB"}
    result.manifest["measured_us"] = 4000.0
    found = emulated(result)
    assert found["night_us"][0] == 20.0
    assert found["day_us"][0] == 180.0
    assert found["circuit_rate_gbps"][0] == pytest.approx(2000 * 72000 / (10 * 180) / 1e3)
    assert found["packet_rate_gbps"][0] == pytest.approx(277 * 72000 / (10 * 200) / 1e3)
