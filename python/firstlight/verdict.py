"""Paper, ours, difference: the rows of a reproduction."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from math import isfinite
from typing import Any

import pandas as pd

from firstlight.claims import At, Claim, Curve, Kind, Mode
from firstlight.result import Result

UTILIZATION = "circuit_utilization_pct"
TAILS = ("p99_all_us", "p99_circuit_us", "p99_packet_us")
MEDIANS = ("p50_all_us", "p50_circuit_us", "p50_packet_us")
SUMMARY_NAMES = {"fct_s": "fct_last_s"}
"""Where a reference's column is called otherwise than our summary's metric."""


@dataclass(frozen=True)
class Row:
    """One number of a paper beside ours.

    ``paper`` is always what the paper's authors published (``None``: they gave no number) and ``difference``
    is ours minus it; ``linux`` is what a real Linux stack gave at the same time scale, where that was
    measured.
    """

    figure: str
    point: str
    metric: str
    unit: str
    paper: float | None
    ours: float | None
    time_scale: int
    linux: float | None = None
    group: str = ""

    @property
    def difference(self) -> float | None:
        """Ours minus the paper's."""
        return minus(self.ours, self.paper)

    @property
    def linux_difference(self) -> float | None:
        """Ours minus the real Linux stack's."""
        return minus(self.ours, self.linux)

    def as_dict(self) -> dict[str, Any]:
        """The row as ``--json`` prints it."""
        fields = {k: v for k, v in asdict(self).items() if k != "group"}
        fields["difference"] = rounded(self.difference)
        fields["linux_difference"] = rounded(self.linux_difference)
        order = ("figure", "point", "metric", "paper", "ours", "difference", "unit", "time_scale")
        fields["ours"] = rounded(self.ours)
        return {k: fields[k] for k in (*order, "linux", "linux_difference")}


@dataclass
class Outcome:
    """What came out of one claim: a result per curve and point."""

    claim: Claim
    mode: Mode
    results: dict[tuple[str, At], Result] = field(default_factory=dict)

    def result(self, curve: Curve, at: At) -> Result:
        """The result of one point of one curve."""
        return self.results[curve.name, at]

    def metric(self, curve: Curve, at: At, name: str) -> float | None:
        """One summary metric, ``None`` when it was not measured."""
        value = self.result(curve, at).summary.get(SUMMARY_NAMES.get(name, name))
        return value if value is not None and isfinite(value) else None

    def rows(self) -> list[Row]:
        """The claim's rows."""
        return list(ROWS[self.claim.kind](self))


def minus(a: float | None, b: float | None) -> float | None:
    """``a - b`` where both are known."""
    return None if a is None or b is None else a - b


def rounded(value: float | None) -> float | None:
    """Six significant digits: more would only be noise in a text."""
    return None if value is None else float(f"{value:.6g}")


def _measured(outcome: Outcome, panels: Mapping[str, str]) -> Iterator[Row]:
    """Rows of the metrics that a claim's expected table has; ``panels`` maps a metric to its figure."""
    claim = outcome.claim
    for at in claim.ats(outcome.mode):
        for curve in claim.curves:
            paper = claim.expected("paper", at, curve.time_scale)
            linux = claim.expected("linux", at, curve.time_scale)
            for metric, figure in panels.items():
                yield Row(
                    figure,
                    claim.label(at),
                    metric,
                    "%" if metric.endswith("_pct") else "s" if metric.endswith("_s") else "us",
                    paper.get(metric),
                    outcome.metric(curve, at, metric),
                    curve.time_scale,
                    linux.get(metric),
                    claim.name,
                )


def _points_rows(outcome: Outcome) -> Iterator[Row]:
    figure = outcome.claim.figure
    panels = (
        {UTILIZATION: f"{figure}a"}
        | dict.fromkeys(TAILS, f"{figure}c")
        | dict.fromkeys(MEDIANS, f"{figure} (median)")
    )
    return _measured(outcome, panels)


def _grid_rows(outcome: Outcome) -> Iterator[Row]:
    return _measured(outcome, dict.fromkeys((UTILIZATION, TAILS[0]), outcome.claim.figure))


def _fct_rows(outcome: Outcome) -> Iterator[Row]:
    return _measured(outcome, {"fct_s": outcome.claim.figure})


def _sequence_rows(outcome: Outcome) -> Iterator[Row]:
    claim = outcome.claim
    for curve in claim.curves:
        result = outcome.result(curve, ())
        for fact in claim.facts:
            ours = mean_voq_in_day(result)
            yield Row(
                claim.figure,
                "days",
                fact.metric,
                "packets",
                fact.paper,
                ours,
                curve.time_scale,
                None,
                claim.name,
            )
        whole = outcome.metric(curve, (), UTILIZATION)
        yield Row(
            claim.figure, "whole run", UTILIZATION, "%", None, whole, curve.time_scale, None, claim.name
        )


def _gain_rows(outcome: Outcome) -> Iterator[Row]:
    """Utilization gained over the base curve of the same time scale, per point and on average."""
    claim = outcome.claim
    papers = {f.metric: f.paper for f in claim.facts}
    for curve in (c for c in claim.curves if c.variant != "base"):
        base = next(c for c in claim.curves if c.variant == "base" and c.time_scale == curve.time_scale)
        gains = {
            at: minus(outcome.metric(curve, at, UTILIZATION), outcome.metric(base, at, UTILIZATION))
            for at in claim.ats(outcome.mode)
        }
        known = [g for g in gains.values() if g is not None]
        mean = sum(known) / len(known) if known else None
        entries = [("mean of all sizes", papers.get("mean"), mean)]
        entries += [(claim.label(at), papers.get(f"{at[0]:g}"), gain) for at, gain in gains.items()]
        for point, paper, ours in entries:
            yield Row(
                claim.figure,
                point,
                "utilization_gain",
                "points",
                paper,
                ours,
                curve.time_scale,
                None,
                claim.name,
            )


ROWS: dict[Kind, Callable[[Outcome], Iterator[Row]]] = {
    "points": _points_rows,
    "sequence": _sequence_rows,
    "fct": _fct_rows,
    "gain": _gain_rows,
    "grid": _grid_rows,
}


def days_of_pair(result: Result, weeks: int = 3) -> list[tuple[float, float]]:
    """When the measured pair has the circuit (us), over ``weeks`` weeks from the fold's start."""
    week = result.week
    source, destination = result.manifest["spec"]["measure"]["pair"]
    length = float(week["end_us"].max())
    mine = [f"{source}->{destination}" in str(m).split() for m in week["matching"]]
    spans = week[pd.Series(mine, index=week.index)][["start_us", "end_us"]].to_numpy(dtype=float)
    return [(a + k * length, b + k * length) for k in range(weeks) for a, b in spans.tolist()]


def mean_voq_in_day(result: Result) -> float:
    """Mean VOQ length over the second half of the pair's days, when the first rush has passed (packets)."""
    series = result.series
    inside = pd.Series(False, index=series.index)
    for start, end in days_of_pair(result):
        inside |= (series["time_us"] >= (start + end) / 2) & (series["time_us"] < end)
    return float(series.loc[inside, "voq_packets"].mean())
