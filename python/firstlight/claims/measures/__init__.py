"""Metrics that are computed from a result's tables, beside those of its summary: one function each.

``value(result, name)`` is what claims of the kind ``measured`` ask.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pandas as pd

from firstlight.claims.measures import fct as measures_fct
from firstlight.claims.measures import jobs as measures_jobs
from firstlight.claims.measures import ladder as measures_ladder
from firstlight.errors import ResultError
from firstlight.runs.result import Result

Array = npt.NDArray[np.float64]
RATES = {"Tbps": 1e12, "Gbps": 1e9, "Mbps": 1e6, "kbps": 1e3, "bps": 1.0}


def value(result: Result, name: str) -> float | None:
    """A summary's metric, one of ``MEASURES`` or of ``FAMILIES``; ``None`` where the run has it not."""
    found = result.summary.get(name)
    if found is None and name in MEASURES:
        found = MEASURES[name](result)
    if found is None:
        found = next((known[name] for known in (f(result) for f in FAMILIES) if name in known), None)
    return found if found is not None and np.isfinite(found) else None


def bits_per_second(rate: str) -> float:
    """``10Gbps`` as a number."""
    unit = next((u for u in RATES if rate.endswith(u)), None)
    if unit is None:
        raise ResultError(f"'{rate}' is no rate")
    return float(rate.removesuffix(unit)) * RATES[unit]


def host_rate(result: Result) -> float:
    """Rate of the hosts' links in bits per second."""
    return bits_per_second(str(result.manifest["spec"]["hosts"]["rate"]))


def sampled_delays_us(result: Result) -> Array:
    """The first watched queue's samples in bytes, as the time that its link takes for them: what DX's
    testbed read from its switch (Fig. 10: "measured in bytes and converted into time"). The link is taken
    to be as fast as a host's."""
    samples = result.table("queue_samples")
    first = samples[samples["name"] == samples["name"].iloc[0]]
    delays: Array = first["bytes"].to_numpy(dtype=float) * 8e6 / host_rate(result)
    return delays


def sampled_delay_mean_us(result: Result) -> float:
    """Mean of the sampled queueing delays."""
    return float(sampled_delays_us(result).mean())


def sampled_delay_p99_us(result: Result) -> float:
    """The sampled queueing delay that 99 % do not exceed."""
    return float(np.quantile(sampled_delays_us(result), 0.99, method="inverted_cdf"))


def throughput(result: Result) -> pd.DataFrame:
    """Goodput in Gb/s, a row for each interval of ``measure.throughput`` (its start in us), a column for
    each flow; 0 where it got nothing, NaN before the first byte and after the last."""
    table = result.table("throughput")
    wide = table.pivot(index="time_us", columns="flow", values="goodput_gbps").sort_index()
    alive = wide.notna().cummax() & wide[::-1].notna().cummax()[::-1]
    return wide.where(~alive | wide.notna(), 0.0)


def settled(result: Result) -> pd.DataFrame:
    """The throughput in those intervals in which the same flows are there as in the one before and the one
    after, for a flow's first and last interval are no rates; so the first and the last are left out."""
    wide = throughput(result)
    there = wide.notna()
    changes = (there != there.shift(1)).any(axis=1) | (there != there.shift(-1)).any(axis=1)
    return wide[~changes]


def jain_index(result: Result) -> float:
    """Jain's index of the flows' throughput, (sum x)^2 / (n sum x^2), of each settled interval with two
    flows or more; their mean. 1 is fair, 1/n is one flow alone."""
    found = []
    for row in settled(result).to_numpy(dtype=float):
        x = row[np.isfinite(row)]
        if len(x) > 1 and x.any():
            found.append(x.sum() ** 2 / (len(x) * (x**2).sum()))
    return float(np.mean(found)) if found else float("nan")


def throughput_std_mbps(result: Result) -> float:
    """Standard deviation of the flows' throughput in Mb/s over all settled intervals and flows: DX's Fig.
    13 names one number for five flows and does not say over what. It contains what fair shares differ by,
    as flows come and go."""
    x = settled(result).to_numpy(dtype=float)
    return float(1e3 * np.std(x[np.isfinite(x)]))


def unfairness_std_mbps(result: Result) -> float:
    """The same about the fair share: root of the mean square of what a flow's throughput differs from the
    mean of the flows of its interval, in Mb/s. A perfectly stable and fair protocol has zero."""
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
    f.__name__: f
    for f in (
        sampled_delay_mean_us,
        sampled_delay_p99_us,
        jain_index,
        throughput_std_mbps,
        unfairness_std_mbps,
        wobble_std_mbps,
    )
}
FAMILIES: tuple[Callable[[Result], dict[str, float]], ...] = (
    measures_fct.metrics,
    measures_jobs.metrics,
    measures_ladder.metrics,
)
"""Each tells many metrics of a result at once, by name; none where they do not apply."""


def interval(result: Result, name: str) -> tuple[float, float] | None:
    """The 95 % interval that a single run tells of a metric; ``None`` where it tells none."""
    return measures_fct.interval(measures_fct.metrics(result), name)
