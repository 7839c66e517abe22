"""The rows of a claim of the kind ``measured``."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from firstlight.claims.claim import At, Axis, Curve, Hosts, Value
from firstlight.claims.form import Fact, Measure
from firstlight.claims.measures import interval as measured_interval
from firstlight.claims.measures import value
from firstlight.claims.measures.fct import ratio_interval
from firstlight.claims.verdict import Outcome, Row, rounded
from firstlight.runs.result import Result

STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
"""Student's t for a two-sided 95 % interval, with 1 to 10 degrees of freedom."""
Point = Mapping[str, Value]
"""Values of the axes that vary, by name."""


@dataclass(frozen=True)
class Number(Row):
    """One number of a measured claim."""

    curve: str = ""
    label: str = ""
    """The metric in words."""
    interval: float | None = None
    """Half of the 95 % interval of ``ours``, over repetitions or as a single run tells it; ``None`` when
    neither is known."""
    alone: bool = False
    """Whether there was a single run, whose own flows give the interval."""

    @property
    def percent(self) -> float | None:
        """The difference in percent of the paper's number."""
        return 100 * self.difference / abs(self.paper) if self.difference is not None and self.paper else None

    def as_dict(self) -> dict[str, Any]:
        """The row as ``--json`` prints it."""
        return {**super().as_dict(), "curve": self.curve, "interval": rounded(self.interval)}


def rows(outcome: Outcome) -> Iterator[Number]:
    """On each kind of hosts every measure at every point of every curve, then the numbers of the text."""
    for hosts in outcome.hosts:
        yield from _rows_on(Measured(outcome, hosts))


def _rows_on(table: "Measured") -> Iterator[Number]:
    outcome = table.outcome
    for measure in outcome.claim.measures:
        for point in table.points():
            for curve in outcome.claim.curves:
                if curve.name in (measure.curves or [curve.name]) and table.has(curve, point):
                    yield table.row(measure, curve, point)
    for fact in outcome.claim.facts:
        named = (fact.curve, fact.by or fact.curve)
        if all(table.hosts in table.curves[name].hosts for name in named):
            yield table.stated(fact)


class Measured:
    """What the runs of one claim measured, by point and curve."""

    def __init__(self, outcome: Outcome, hosts: Hosts = "simulated") -> None:
        self.outcome = outcome
        self.claim = outcome.claim
        self.hosts = hosts
        self.curves = {c.name: c for c in self.claim.curves}

    def axes(self) -> list[Axis]:
        """The axes that vary."""
        return [a for a in self.claim.axes if a.varies]

    def points(self) -> list[Point]:
        """The points that there are results of."""
        named = [self._point(at) for at in self.outcome.ats(self.hosts)]
        return [p for i, p in enumerate(named) if p not in named[:i]]

    def _point(self, at: At) -> Point:
        return {a.name: v for a, v in zip(self.claim.axes, at, strict=True) if a.varies}

    def has(self, curve: Curve, point: Point) -> bool:
        """Whether a curve was run at a point."""
        return bool(self._all(curve, point))

    def _all(self, curve: Curve, point: Point) -> dict[At, Result]:
        found = self.outcome.results.items()
        mine = {at: r for (h, c, at), r in found if (h, c) == (self.hosts, curve.name)}
        return {at: r for at, r in mine.items() if self._point(at) == point}

    def results(self, curve: Curve, point: Point) -> list[Result]:
        """The repetitions of a curve at a point, where an axis is searched at the value that was found."""
        chosen = self.chosen(curve, point)
        if chosen is None:
            return []
        wanted = chosen.items()
        return [r for at, r in self._all(curve, point).items() if wanted <= self.claim.named(at).items()]

    def chosen(self, curve: Curve, point: Point) -> dict[str, Value] | None:
        """The value of each searched axis; ``None`` where none gives what is sought."""
        found: dict[str, Value] = {}
        for axis in self.claim.axes:
            if axis.least is None:
                continue
            reaching = [v for v, reached in self.tried(curve, point, axis) if reached]
            if not reaching:
                return None
            found[axis.name] = min(reaching)
        return found

    def tried(self, curve: Curve, point: Point, axis: Axis) -> list[tuple[Value, bool]]:
        """The values of a searched axis, and whether each gives what is sought on average over
        repetitions."""
        assert axis.least is not None
        by: dict[Value, list[float]] = {}
        for at, result in self._all(curve, point).items():
            got = value(result, axis.least.metric)
            by.setdefault(self.claim.named(at)[axis.name], []).append(np.nan if got is None else got)
        return [(v, bool(np.mean(got) >= axis.least.reaches)) for v, got in by.items()]

    def values(self, curve: Curve, point: Point, metric: str) -> list[float]:
        """A metric of each repetition; of a searched axis, the value that was found."""
        chosen = self.chosen(curve, point)
        if chosen and metric in chosen:
            return [float(chosen[metric])]
        found = [value(r, metric) for r in self.results(curve, point)]
        return [v for v in found if v is not None]

    def paper(self, curve: Curve, point: Point, metric: str) -> float | None:
        """The paper's number, from ``expected.csv``."""
        frame = self.claim.paper
        for name, wanted in {**point, "curve": curve.name}.items():
            if name in frame:
                frame = frame[frame[name] == wanted]
        if frame.empty or metric not in frame:
            return None
        found = float(frame.iloc[0][metric])
        return found if np.isfinite(found) else None

    def name(self, point: Point) -> str:
        """A point as a person names it."""
        return ", ".join(axis.text(point[axis.name]) for axis in self.axes())

    def label(self, point: Point) -> str:
        """The same, with the hosts where these are Linux."""
        return ", ".join(t for t in (self.name(point), self.suffix) if t)

    @property
    def suffix(self) -> str:
        """What tells results on Linux hosts from others."""
        return "Linux" if self.hosts == "linux" else ""

    def row(self, measure: Measure, curve: Curve, point: Point) -> Number:
        """A measure at a point."""
        mean, interval = summarized(self.values(curve, point, measure.metric))
        if interval is None:
            interval = half(self.single(curve, point, measure.metric))
        return Number(
            measure.figure,
            ", ".join(t for t in (self.label(point), curve.name) if t),
            measure.metric,
            measure.unit,
            self.paper(curve, point, measure.metric),
            mean,
            curve.time_scale,
            group=self.claim.name,
            hosts=self.hosts,
            curve=curve.name,
            label=measure.label,
            interval=interval,
            alone=len(self.results(curve, point)) == 1,
        )

    def stated(self, fact: Fact) -> Number:
        """A number of the text."""
        measure = next((m for m in self.claim.measures if m.metric == fact.metric), None)
        curve = self.curves[fact.curve]
        points = [p for p in self.points() if fact.at.items() <= p.items() and self.has(curve, p)]
        if fact.by:
            points = [p for p in points if self.has(self.curves[fact.by], p)]
        at_points = [self._compared(fact, curve, point) for point in points]
        known = [(m, i) for m, i in at_points if m is not None]
        ours, interval = _over(fact, known) if len(known) == len(points) else (None, None)
        label = measure.label if measure else fact.metric
        names = f"{fact.by} / {curve.name}" if fact.by else curve.name
        where = self.name(points[0]) if len(points) == 1 else f"{fact.over} of {len(points)} points"
        return Number(
            fact.figure or (measure.figure if measure else self.claim.figure),
            ", ".join(t for t in (where, self.suffix, names) if t),
            fact.metric,
            fact.unit or ("x" if fact.by else measure.unit if measure else ""),
            fact.paper,
            ours,
            curve.time_scale,
            group=self.claim.name,
            hosts=self.hosts,
            curve=curve.name,
            label=f"{label}, ratio" if fact.by else label,
            interval=interval,
            alone=all(len(self.results(curve, point)) == 1 for point in points),
        )

    def _compared(self, fact: Fact, curve: Curve, point: Point) -> tuple[float | None, float | None]:
        below = self.values(curve, point, fact.metric)
        if not fact.by:
            return summarized(below)
        above = self.values(self.curves[fact.by], point, fact.metric)
        if not above or not below or not np.mean(below):
            return None, None
        ratios = [a / b for a, b in zip(above, below, strict=False) if b]
        interval = summarized(ratios)[1]
        if interval is None:
            ends = [self.single(c, point, fact.metric) for c in (self.curves[fact.by], curve)]
            if ends[0] and ends[1]:
                interval = half(ratio_interval(above[0], ends[0], below[0], ends[1]))
        return float(np.mean(above) / np.mean(below)), interval

    def single(self, curve: Curve, point: Point, metric: str) -> tuple[float, float] | None:
        """The 95 % interval that the only run of a curve at a point tells of a metric."""
        results = self.results(curve, point)
        return measured_interval(results[0], metric) if len(results) == 1 else None


def half(ends: tuple[float, float] | None) -> float | None:
    """Half of an interval."""
    return None if ends is None else (ends[1] - ends[0]) / 2


def summarized(values: Sequence[float]) -> tuple[float | None, float | None]:
    """Mean, and half of its 95 % interval by Student's t where there are two values or more."""
    if not values:
        return None, None
    mean, n = float(np.mean(values)), len(values)
    if n == 1:
        return mean, None
    t = STUDENT[n - 2] if n - 2 < len(STUDENT) else 1.96
    return mean, float(t * np.std(values, ddof=1) / np.sqrt(n))


def _over(fact: Fact, known: Sequence[tuple[float, float | None]]) -> tuple[float | None, float | None]:
    """Mean, least or largest over points; only a single point keeps its interval."""
    if not known:
        return None, None
    means = [mean for mean, _ in known]
    if len(known) == 1:
        return known[0]
    return {"mean": float(np.mean(means)), "least": min(means), "largest": max(means)}[fact.over], None
