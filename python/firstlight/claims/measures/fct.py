"""Completion times by flow size as metrics, from table ``fct``.

A metric is a column and a group: ``mean_us: from 10MB``, ``p99_high_us: 0B to 10kB``. Where an experiment has
several workloads, theirs come first: ``workload.1: mean_us: all``.
"""

from collections.abc import Mapping
from math import isfinite

from firstlight.runs.result import Result

COLUMNS = (
    "flows",
    "completed",
    "mean_us",
    "mean_low_us",
    "mean_high_us",
    "median_us",
    "p99_us",
    "p99_low_us",
    "p99_high_us",
    "slowdown_mean",
    "slowdown_median",
    "slowdown_p99",
)


def metrics(result: Result) -> dict[str, float]:
    """The metrics of table ``fct``; none where a run has no sized flows."""
    if "fct" not in result.tables:
        return {}
    frame = result.table("fct")
    several = frame["workload"].nunique() > 1
    found: dict[str, float] = {}
    for row in frame.to_dict("records"):
        prefix = f"{row['workload']}: " if several else ""
        found |= {f"{prefix}{column}: {row['group']}": float(row[column]) for column in COLUMNS}
    return {name: value for name, value in found.items() if isfinite(value)}


def interval(known: Mapping[str, float], metric: str) -> tuple[float, float] | None:
    """The 95 % interval of a mean or a p99 among :func:`metrics`; ``None`` where there is none."""
    column, _, group = metric.rpartition("_us: ")
    ends = [known.get(f"{column}_{end}_us: {group}") for end in ("low", "high")]
    return None if ends[0] is None or ends[1] is None else (ends[0], ends[1])


def ratio_interval(
    above: float, above_ends: tuple[float, float], below: float, below_ends: tuple[float, float]
) -> tuple[float, float]:
    """The 95 % interval of ``above / below``, from both intervals as if they were independent: the relative
    half-widths add up as squares, each side's with the opposite side of the other.

    Runs of one seed have the same flows, whose common part cancels: the true interval is narrower.
    """
    ratio = above / below
    low = ((1 - above_ends[0] / above) ** 2 + (below_ends[1] / below - 1) ** 2) ** 0.5
    high = ((above_ends[1] / above - 1) ** 2 + (1 - below_ends[0] / below) ** 2) ** 0.5
    return ratio / (1 + low), ratio * (1 + high)
