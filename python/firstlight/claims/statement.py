"""Statements: a sentence of a paper, quoted, and the checks that it is true here."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from firstlight.claims.form import Value, table
from firstlight.runs.run import HOSTS

Over = Literal["each", "mean", "least", "largest"]
CURVE = "curve"
"""The value of ``along`` where a check goes along the curves and not along an axis."""


@dataclass(frozen=True)
class StatedCheck:
    """One number or order that a statement asks for.

    The number is ``metric`` at every point of ``curves`` that ``at`` allows; with ``ratio`` or ``knee`` it
    is made of several points ``along`` the curves or an axis. It has to be near ``paper``, near the number of
    ``expected.csv`` where ``paper`` is missing, or between ``least`` and ``most``. An ``order`` has no
    number.
    """

    metric: str
    curves: tuple[str, ...] = ()
    """The check's curves; if empty, all curves that have the metric."""
    at: Mapping[str, Any] = field(default_factory=dict)
    """The points that it is about: a value, or a list of values, of an axis."""
    along: str = CURVE
    """The direction of ``ratio``, ``order`` and ``knee``: ``curve``, or the name of an axis."""
    ratio: tuple[Value, ...] = ()
    """Two curves, or two values of the axis ``along``: the metric at the first divided by that at the
    second."""
    under: str = ""
    """The metric in the denominator of ``ratio``, if it differs."""
    order: tuple[Value, ...] = ()
    """Curves, or values of the axis ``along``, from the smallest metric to the largest."""
    knee: float | None = None
    """The number is the first value of the axis ``along`` from which on the metric is at least this."""
    over: Over = "each"
    """Whether each number has to pass, or their mean, the least or the largest of them. With ``expected.csv``
    it is taken of the distances from the paper's numbers."""
    paper: float | None = None
    """The number that the paper states."""
    within: float | None = None
    """How far from the paper's number ours may be, in the metric's unit."""
    within_pct: float | None = None
    """How far from the paper's number ours may be, in percent of it."""
    least: float | None = None
    most: float | None = None
    figure: str = ""
    """The figure of the row that a number of the text has; that of the measure if empty."""

    @property
    def is_plain(self) -> bool:
        """Whether the number is the metric at one point, and not made of several."""
        return not (self.ratio or self.order or self.knee is not None)

    @property
    def is_of_table(self) -> bool:
        """Whether ours is compared with ``expected.csv``."""
        return self.paper is None and (self.within is not None or self.within_pct is not None)

    def states(self, curve: str, point: Mapping[str, Value]) -> bool:
        """Whether it states the paper's number at a point of a curve."""
        each = self.paper is not None and self.is_plain and self.over == "each"
        return each and (not self.curves or curve in self.curves) and self.is_at(point)

    def is_at(self, point: Mapping[str, Value]) -> bool:
        """Whether it is about a point."""
        return all(point[name] in values for name, values in self.allowed().items() if name in point)

    def allowed(self) -> dict[str, Sequence[Value]]:
        """The values of axes in ``at``, as lists."""
        return {name: v if isinstance(v, list) else [v] for name, v in self.at.items()}


@dataclass(frozen=True)
class Statement:
    """A sentence of a paper and its checks."""

    quote: str
    checks: tuple[StatedCheck, ...]
    not_comparable: Mapping[str, str] = field(default_factory=dict)
    """Why it cannot be judged on a kind of hosts, by ``simulated`` and ``linux``."""
    cause: str = ""
    """Why it does not hold, and what shows this: the name of a curve or of a claim, or a command."""


def statement(given: Mapping[str, Any]) -> Statement:
    """Read one table of ``[[statements]]``; raises ``ValueError``."""
    place = "[[statements]]"
    found = table(Statement, {**given, "checks": [check(c) for c in given.get("checks", [])]}, place)
    if not found.checks:
        raise ValueError(f"{place}: the statement '{found.quote[:40]}...' has no checks")
    if strange := sorted(set(found.not_comparable) - set(HOSTS)):
        raise ValueError(f"{place}: not_comparable names '{strange[0]}'; write {' or '.join(HOSTS)}")
    return found


def check(given: Mapping[str, Any]) -> StatedCheck:
    """Read one of ``checks``; raises ``ValueError`` for keys that do not go together."""
    found = table(StatedCheck, given, "checks")
    for problem in _problems(found):
        raise ValueError(f"the check of {found.metric}: {problem}")
    return found


def _problems(check: StatedCheck) -> Iterator[str]:
    """The problems of a check's keys, each in a sentence."""
    bounds = check.least is not None or check.most is not None
    near = check.within is not None or check.within_pct is not None
    if sum((bool(check.ratio), bool(check.order), check.knee is not None)) > 1:
        yield "write one of ratio, order and knee"
    if check.order and (bounds or near or check.paper is not None or check.over != "each"):
        yield "an order has no number; write a second check for the number"
    if not check.order and bounds == near:
        yield "write least and most, or within or within_pct, or order"
    if check.within is not None and check.within_pct is not None:
        yield "write within or within_pct, not both"
    if check.paper is not None and not near:
        yield "a number of the paper needs within or within_pct"
    if check.is_of_table and not check.is_plain:
        yield "expected.csv has no ratio and no knee; write the number as paper"
    if check.ratio and len(check.ratio) != 2:
        yield "ratio has two values: what is divided, and by what"
    if len(check.order) == 1:
        yield "order has two values or more"
    if check.under and not check.ratio:
        yield "under is the metric below the line of a ratio"
    if check.knee is not None and check.along == CURVE:
        yield "a knee goes along an axis; name it with along"
