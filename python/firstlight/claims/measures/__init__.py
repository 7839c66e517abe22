"""Metrics that are computed from a result's tables, beside those of its summary.

Claims ask :func:`value`. A module here has ``MEASURES``, functions by the metric's name, or ``metrics``,
which computes all of its metrics at once, or ``value``, whose metrics have parameters in their names.
"""

from collections.abc import Callable
from math import isfinite
from weakref import WeakKeyDictionary

from firstlight.claims.measures import (
    captured,
    connections,
    fct,
    hybrid,
    jobs,
    ladder,
    phases,
    programs,
    queues,
    throughput,
    writes,
)
from firstlight.runs.result import Result

MEASURES: dict[str, Callable[[Result], float]] = {
    **captured.MEASURES,
    **hybrid.MEASURES,
    **queues.MEASURES,
    **throughput.MEASURES,
}
Family = Callable[[Result], dict[str, float]]
FAMILIES: tuple[Family, ...] = (
    connections.metrics,
    fct.metrics,
    jobs.metrics,
    ladder.metrics,
    programs.metrics,
    writes.metrics,
)


_KNOWN: "WeakKeyDictionary[Result, dict[Family, dict[str, float]]]" = WeakKeyDictionary()
"""The metrics of results that live, which rows, verdicts and figures ask for again and again."""


def _metrics(result: Result, family: Family) -> dict[str, float]:
    known = _KNOWN.setdefault(result, {})
    if family not in known:
        known[family] = family(result)
    return known[family]


def value(result: Result, name: str) -> float | None:
    """A metric of the summary, one of ``MEASURES`` or of ``FAMILIES``; ``None`` where the run has no such
    metric."""
    found = result.summary.get(name)
    if found is None and name in MEASURES:
        found = MEASURES[name](result)
    if found is None:
        found = next(
            (known[name] for known in (_metrics(result, f) for f in FAMILIES) if name in known), None
        )
    if found is None:
        found = phases.value(result, name)
    return found if found is not None and isfinite(found) else None


def interval(result: Result, name: str) -> tuple[float, float] | None:
    """The 95 % interval of a metric by the flows of a single run; ``None`` where it is not known."""
    return fct.interval(_metrics(result, fct.metrics), name)
