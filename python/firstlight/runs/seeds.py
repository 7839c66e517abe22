"""Several seeds of one experiment: which, and the means and intervals of what they give."""

from collections.abc import Iterable, Sequence
from math import isfinite
from typing import TYPE_CHECKING

from firstlight.core import Spec
from firstlight.errors import PlanError
from firstlight.runs.result import Result

if TYPE_CHECKING:
    import pandas as pd

KEY = "seed"
MOST_POINTS = 1_000_000
"""The most points of a sweep."""


def seeds_of(spec: Spec, count: int) -> list[int]:
    """``count`` seeds, from the experiment's own on."""
    if not isinstance(count, int) or count < 2:
        raise PlanError(f"seeds = {count!r}: an interval needs two or more")
    if count > MOST_POINTS:
        raise PlanError(f"seeds = {count:,}: at most {MOST_POINTS:,} are possible; use fewer")
    first = int(spec.check().resolved[KEY])
    return list(range(first, first + count))


def means(results: Sequence[Result]) -> "pd.DataFrame":
    """One row per summary metric: its unit, its mean over the results that have it, and half of the 95 %
    interval of that mean (Student's t)."""
    import pandas as pd

    units: dict[str, str] = {}
    summaries = []
    for result in results:
        columns = result.lists("summary")
        units |= zip(columns["metric"], columns["unit"], strict=True)
        summaries.append(result.summary)
    rows = []
    for metric, unit in units.items():
        if found := mean(summary.get(metric) for summary in summaries):
            rows.append((metric, unit, *found))
    return pd.DataFrame(rows, columns=["metric", "unit", "mean", "interval"])


def mean(values: Iterable[float | None]) -> tuple[float, float] | None:
    """The mean of the finite values, and half of its 95 % interval; ``None`` where no value is finite."""
    import numpy as np

    from firstlight.numbers import half_interval

    finite = np.array([v for v in values if v is not None and isfinite(v)])
    return (float(finite.mean()), half_interval(finite)) if len(finite) else None
