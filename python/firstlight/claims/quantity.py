"""The numbers that a check is about, on one platform."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from firstlight.claims.claim import Claim
from firstlight.claims.form import Curve, Value
from firstlight.claims.outcome import Estimate, Measured, Place, Point
from firstlight.claims.statement import CURVE, StatedCheck


class Quantity(NamedTuple):
    """A number, where it is from, and the paper's."""

    place: str
    estimate: Estimate
    paper: float | None = None


class Stem(NamedTuple):
    """The curve and the values of axes that the points of one number or order share, without the axis that
    the check goes along."""

    curve: Curve | None
    point: Point

    def name(self, view: Measured) -> str:
        """The stem as a person names it."""
        named = [a.text(self.point[a.name]) for a in view.axes() if a.name in self.point]
        return ", ".join([*named, *([self.curve.name] if self.curve and self.curve.name else [])])


def stems(view: Measured, check: StatedCheck) -> list[Stem]:
    """The stems of a check that were run."""
    points: dict[tuple[Value, ...], Point] = {}
    for point in view.points():
        if check.is_at(point):
            rest = {name: v for name, v in point.items() if name != check.along}
            points.setdefault(tuple(rest.values()), rest)
    if check.along == CURVE and not check.is_plain:
        found = [Stem(None, point) for point in points.values()]
    else:
        found = [Stem(curve, point) for point in points.values() for curve in _curves(view, check)]
    return [stem for stem in found if _was_run(view, check, stem)]


def _curves(view: Measured, check: StatedCheck) -> list[Curve]:
    """The curves that a check is about."""
    measure = next((m for m in view.claim.measures if m.metric == check.metric), None)
    named = check.curves or (measure.curves if measure else ())
    return [c for c in view.claim.curves if c.name in (named or [c.name])]


def _was_run(view: Measured, check: StatedCheck, stem: Stem) -> bool:
    """Whether there are results of all runs that a number needs."""
    if check.knee is not None:
        return bool(_values(view, check, stem))
    wanted = check.ratio or check.order or ("",)
    return all(view.has(*place(view, check, stem, value)) for value in wanted)


def place(view: Measured, check: StatedCheck, stem: Stem, value: Value) -> Place:
    """The curve and point of a stem at one of the values that the check goes along; of a plain check, the
    stem."""
    if check.is_plain or (stem.curve is not None and check.along == CURVE):
        assert stem.curve is not None
        return stem.curve, stem.point
    if stem.curve is None:
        return view.curves[str(value)], stem.point
    return stem.curve, {a.name: value if a.name == check.along else stem.point[a.name] for a in view.axes()}


def _values(view: Measured, check: StatedCheck, stem: Stem) -> list[Value]:
    """The values of the axis that a check goes along at which a stem was run."""
    axis = next(a for a in view.axes() if a.name == check.along)
    return [v for v in axis.values if view.has(*place(view, check, stem, v))]


def quantities(view: Measured, check: StatedCheck) -> list[Quantity]:
    """The numbers of a check that is no order: one for each stem that was run, or one over all of them. Of a
    check against ``expected.csv``, distances from the paper's numbers."""
    found = [q for stem in stems(view, check) for q in _quantity(view, check, stem)]
    if check.over == "each" or len(found) < 2:
        return found
    values = [q.estimate.value for q in found if q.estimate.value is not None]
    every = ", ".join([f"{check.over} of {len(found)} points", *check.curves])
    if len(values) < len(found):
        return [Quantity(every, Estimate(), check.paper)]
    over = {"mean": float(np.mean(values)), "least": min(values), "largest": max(values)}[check.over]
    return [Quantity(every, Estimate(over), check.paper)]


def _quantity(view: Measured, check: StatedCheck, stem: Stem) -> Iterator[Quantity]:
    name = stem.name(view)
    if check.is_of_table:
        yield from _distance(view, check, stem)
    elif check.ratio:
        above, below = (place(view, check, stem, value) for value in check.ratio)
        yield Quantity(name, view.ratio(above, below, check.metric, check.under or check.metric), check.paper)
    elif check.knee is not None:
        yield Quantity(name, Estimate(_knee(view, check, stem)), check.paper)
    else:
        yield Quantity(name, view.estimate(*place(view, check, stem, ""), check.metric), check.paper)


def _distance(view: Measured, check: StatedCheck, stem: Stem) -> Iterator[Quantity]:
    """The distance of our number from that of ``expected.csv``, if the file has one."""
    curve, point = place(view, check, stem, "")
    paper = view.expected("paper", curve, point, check.metric)
    if paper is not None:
        ours = view.estimate(curve, point, check.metric).value
        apart = None if ours is None else abs(ours - paper)
        if apart is not None and check.within_pct is not None:
            apart = 100 * apart / abs(paper) if paper else None
        yield Quantity(stem.name(view), Estimate(apart))


def _knee(view: Measured, check: StatedCheck, stem: Stem) -> float | None:
    """The first value of the axis from which on the metric is large enough, ``None`` where there is none."""
    assert check.knee is not None
    found = None
    for v in reversed(_values(view, check, stem)):
        metric = view.estimate(*place(view, check, stem, v), check.metric).value
        if metric is None or metric < check.knee:
            break
        found = float(v)
    return found


def compared(claim: Claim, check: StatedCheck, values: Iterable[Value]) -> list[str]:
    """Some of the curves or values of an axis that a check goes along, as a person names them."""
    if check.along == CURVE:
        return [str(v) for v in values]
    axis = next(a for a in claim.axes if a.name == check.along)
    return [axis.text(v) for v in values]


def ordered(view: Measured, check: StatedCheck, stem: Stem) -> list[float | None]:
    """The metric at each value of an order."""
    return [view.estimate(*place(view, check, stem, v), check.metric).value for v in check.order]
