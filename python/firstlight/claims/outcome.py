"""The measurements of one claim's runs, by platform, curve and point."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import Literal, NamedTuple

import numpy as np

from firstlight.claims.claim import At, Claim, Platform, RunKey
from firstlight.claims.form import Axis, Curve, Mode, Value
from firstlight.claims.measures import interval, value
from firstlight.claims.measures.fct import ratio_interval
from firstlight.numbers import half_interval
from firstlight.runs.result import Result
from firstlight.runs.run import HOSTS, Hosts

Point = Mapping[str, Value]
"""Values of the axes that vary, by name."""
Place = tuple[Curve, Point]
"""A curve at a point."""


class Estimate(NamedTuple):
    """A number, ``None`` where it is not known."""

    value: float | None = None
    interval: float | None = None
    """Half of its 95 % interval, ``None`` where it is not known."""
    alone: bool = False
    """Whether the interval is that of a single run, by its own flows; else it is over repetitions."""


@dataclass
class Outcome:
    """The results of one claim."""

    claim: Claim
    mode: Mode
    results: dict[RunKey, Result] = field(default_factory=dict)

    @property
    def hosts(self) -> tuple[Hosts, ...]:
        """The kinds of hosts that there are results of."""
        return tuple(h for h in HOSTS if any(platform.hosts == h for platform, _, _ in self.results))

    @property
    def platforms(self) -> list[Platform]:
        """The platforms that there are results of: by time scale, simulated hosts first."""
        return [Platform(h, scale) for scale in self.claim.time_scales for h in self.hosts]

    @property
    def views(self) -> "list[Measured]":
        """The measurements on each platform."""
        return [Measured(self, platform) for platform in self.platforms]

    def ats(self, platforms: Iterable[Platform]) -> list[At]:
        """The points of all axes that there are results of on ``platforms``, in the claim's order."""
        wanted = set(platforms)
        known = {at for platform, _, at in self.results if platform in wanted}
        return [at for at in product(*(axis.values for axis in self.claim.axes)) if at in known]

    def points(self, platforms: Iterable[Platform] | None = None) -> list[Point]:
        """The points of the axes that vary that there are results of, in the claim's order."""
        found: dict[tuple[Value, ...], Point] = {}
        for at in self.ats(self.platforms if platforms is None else platforms):
            point = self.claim.point_of(at)
            found.setdefault(tuple(point.values()), point)
        return list(found.values())


class Measured:
    """The measurements of one claim's runs on one platform."""

    def __init__(self, outcome: Outcome, platform: Platform) -> None:
        self.outcome = outcome
        self.claim = outcome.claim
        self.platform = platform
        self.curves = {c.name: c for c in self.claim.curves}
        self._measures = {m.metric: m for m in self.claim.measures}
        self._runs: dict[tuple[str, tuple[Value, ...]], dict[At, Result]] = {}
        for (there, curve, at), result in outcome.results.items():
            if there == platform:
                place = curve, tuple(self.claim.point_of(at).values())
                self._runs.setdefault(place, {})[at] = result

    @cached_property
    def linux(self) -> "Measured | None":
        """The measures of Linux hosts at this scale; ``None`` for themselves, and where they were not run."""
        there = Platform("linux", self.platform.time_scale)
        known = there in self.outcome.platforms and there != self.platform
        return Measured(self.outcome, there) if known else None

    def axes(self) -> list[Axis]:
        """The axes that vary."""
        return [a for a in self.claim.axes if a.varies]

    def points(self) -> list[Point]:
        """The points that there are results of."""
        return self.outcome.points([self.platform])

    def _all(self, curve: Curve, point: Point) -> dict[At, Result]:
        return self._runs.get((curve.name, tuple(point.values())), {})

    def has(self, curve: Curve, point: Point) -> bool:
        """Whether a curve was run at a point."""
        return bool(self._all(curve, point))

    def results(self, curve: Curve, point: Point) -> list[Result]:
        """The repetitions of a curve at a point; where an axis is searched, at the value that was found."""
        chosen = self.chosen(curve, point)
        if chosen is None:
            return []
        wanted = chosen.items()
        return [r for at, r in self._all(curve, point).items() if wanted <= self.claim.named(at).items()]

    def chosen(self, curve: Curve, point: Point) -> dict[str, Value] | None:
        """The value of each searched axis; ``None`` where no value reaches the goal."""
        found: dict[str, Value] = {}
        for axis in self.claim.axes:
            if axis.least is not None:
                reaching = [v for v, reached in self.tried(curve, point, axis) if reached]
                if not reaching:
                    return None
                found[axis.name] = min(reaching)
        return found

    def tried(self, curve: Curve, point: Point, axis: Axis) -> list[tuple[Value, bool]]:
        """The values of a searched axis, and whether each reaches the goal on average over repetitions."""
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
        measure = self._measures.get(metric)
        name = (measure and measure.of) or metric
        found = [v for v in (value(r, name) for r in self.results(curve, point)) if v is not None]
        if measure is None or not measure.minus:
            return found
        base = self.values(self.curves[measure.minus], point, name)
        return [a - b for a, b in zip(found, base, strict=False)]

    def estimate(self, curve: Curve, point: Point, metric: str) -> Estimate:
        """A metric's mean over repetitions with its interval; of a single run the interval of its own flows,
        where it has one."""
        found = summarized(self.values(curve, point, metric))
        ends = self._single(curve, point, metric)
        return found if ends is None else Estimate(found.value, half(*ends), alone=True)

    def ratio(self, above: Place, below: Place, metric: str, under: str) -> Estimate:
        """``metric`` at one place divided by ``under`` at another, run by run."""
        over_line, under_line = self.values(*above, metric), self.values(*below, under)
        if not over_line or not under_line or not np.mean(under_line):
            return Estimate()
        ratio = float(np.mean(over_line) / np.mean(under_line))
        ends = self._single(*above, metric), self._single(*below, under)
        if ends[0] and ends[1]:
            found = ratio_interval(over_line[0], ends[0], under_line[0], ends[1])
            return Estimate(ratio, half(*found), alone=True)
        over_runs = summarized([a / b for a, b in zip(over_line, under_line, strict=False) if b])
        return Estimate(ratio, over_runs.interval)

    def paper(self, curve: Curve, point: Point, metric: str) -> float | None:
        """The paper's number: of the text if it states one for this point, else of ``expected.csv``."""
        for check in self.claim.checks:
            if check.metric == metric and check.states(curve.name, point):
                return check.paper
        return self.expected("paper", curve, point, metric)

    def expected(
        self, source: Literal["paper", "linux"], curve: Curve, point: Point, metric: str
    ) -> float | None:
        """A number of ``expected.csv`` or of ``linux.csv``."""
        known = self.claim.expected(source, point, curve.name, self.platform.time_scale)
        found = known.get(metric)
        return None if found is None or not np.isfinite(found) else float(found)

    def name(self, point: Point) -> str:
        """A point as a person names it."""
        return ", ".join(axis.text(point[axis.name]) for axis in self.axes())

    def _single(self, curve: Curve, point: Point, metric: str) -> tuple[float, float] | None:
        """The 95 % interval of a metric by the flows of a curve's only run at a point."""
        results = self.results(curve, point)
        return interval(results[0], metric) if len(results) == 1 else None


def half(low: float, high: float) -> float:
    """Half of an interval."""
    return (high - low) / 2


def summarized(values: Sequence[float]) -> Estimate:
    """Mean, and half of its 95 % interval by Student's t where there are two values or more."""
    if not values:
        return Estimate()
    mean, n = float(np.mean(values)), len(values)
    if n == 1:
        return Estimate(mean)
    return Estimate(mean, half_interval(np.asarray(values, dtype=float)))
