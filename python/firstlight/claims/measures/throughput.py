"""Metrics of flows' throughput, from table ``throughput``: fairness and steadiness.

A flow's first and last interval are no rates, because it was not there for all of them. So the metrics use
the *settled* intervals: those in which the same flows are there as in the interval before and in the one
after.
"""

from collections.abc import Callable

import numpy as np
import pandas as pd

from firstlight.runs.result import Result


def throughput(result: Result) -> pd.DataFrame:
    """Goodput in Gb/s: a row for each interval of ``measure.throughput`` (its start in us), a column for each
    flow; 0 where a flow got nothing, NaN before its first byte and after its last."""
    table = result.table("throughput")
    wide = table.pivot(index="time_us", columns="flow", values="goodput_gbps").sort_index()
    alive = wide.notna().cummax() & wide[::-1].notna().cummax()[::-1]
    return wide.where(~alive | wide.notna(), 0.0)


def settled(result: Result) -> pd.DataFrame:
    """The throughput in the settled intervals; the first and the last interval of a run are never settled."""
    wide = throughput(result)
    there = wide.notna()
    changes = (there != there.shift(1)).any(axis=1) | (there != there.shift(-1)).any(axis=1)
    return wide[~changes]


def jain_index(result: Result) -> float:
    """Mean of Jain's index of the flows' throughput, (sum x)^2 / (n sum x^2), over the settled intervals with
    two flows or more. 1 is fair; 1/n is one flow alone."""
    found = []
    for row in settled(result).to_numpy(dtype=float):
        x = row[np.isfinite(row)]
        if len(x) > 1 and x.any():
            found.append(x.sum() ** 2 / (len(x) * (x**2).sum()))
    return float(np.mean(found)) if found else float("nan")


def throughput_std_mbps(result: Result) -> float:
    """Standard deviation of the flows' throughput in Mb/s over all settled intervals and flows. DX's Fig. 13
    names one number for five flows and does not say over what. The changes of the fair share, as flows come
    and go, are in it."""
    x = settled(result).to_numpy(dtype=float)
    return float(1e3 * np.std(x[np.isfinite(x)]))


def unfairness_std_mbps(result: Result) -> float:
    """Root of the mean square of the differences between a flow's throughput and its interval's mean, in
    Mb/s, over the settled intervals. A perfectly stable and fair protocol has zero."""
    wide = settled(result)
    x = wide.sub(wide.mean(axis=1), axis=0).to_numpy(dtype=float)
    return float(1e3 * np.sqrt(np.mean(x[np.isfinite(x)] ** 2)))


def wobble_std_mbps(result: Result) -> float:
    """Standard deviation of a flow's throughput in Mb/s within each stretch of time in which the same flows
    are there; the mean over stretches and flows."""
    wide = settled(result)
    there = wide.notna()
    stretch = (there != there.shift(1)).any(axis=1).cumsum()
    deviations = wide.groupby(stretch).std(ddof=0).to_numpy(dtype=float)
    return float(1e3 * np.mean(deviations[np.isfinite(deviations)]))


MEASURES: dict[str, Callable[[Result], float]] = {
    f.__name__: f for f in (jain_index, throughput_std_mbps, unfairness_std_mbps, wobble_std_mbps)
}
