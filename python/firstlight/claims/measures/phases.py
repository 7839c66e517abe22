"""Metrics of a part of the run, from table ``throughput``.

- ``gbps: NAME, 30 to 70 %``: what the flows of workload NAME got together in this part of the run's duration.
- ``jain: 30 to 70 %``: mean of Jain's index of all flows over the intervals of this part. A flow that got
  nothing counts.
- ``convergence_ms: 25 %``: the time from this moment until, for ten intervals, each flow that has started has
  at least half of its fair share.
"""

import re

import numpy as np
import pandas as pd

from firstlight.claims.measures.units import in_us
from firstlight.runs.result import Result

PART = re.compile(r"(?:gbps: (?P<name>.+), |jain: )(?P<begin>[\d.]+) to (?P<end>[\d.]+) %")
MOMENT = re.compile(r"convergence_ms: (?P<begin>[\d.]+) %")
STEADY = 10
"""Intervals after which a share counts as reached."""
ENOUGH = 0.5
"""The part of the fair share that does."""


def value(result: Result, metric: str) -> float | None:
    """The metric, if its name has one of the forms above and the run has the table."""
    if "throughput" not in result.tables:
        return None
    if moment := MOMENT.fullmatch(metric):
        return _convergence(result, float(moment["begin"]) / 100)
    if not (part := PART.fullmatch(metric)):
        return None
    inside = _part(result, float(part["begin"]) / 100, float(part["end"]) / 100)
    if part["name"] is None:
        return _jain(inside)
    flows = result.table("flows")
    own = flows.loc[flows["workload"] == part["name"], "id"]
    return float(inside[own].sum(axis=1).mean())


def _all(result: Result) -> pd.DataFrame:
    """Goodput in Gb/s: a row for each interval (its start in us), a column for each flow, 0 for nothing."""
    table, spec = result.table("throughput"), result.manifest["spec"]
    wide = table.pivot(index="time_us", columns="flow", values="goodput_gbps")
    every, warmup = in_us(spec["measure"]["throughput"]), in_us(spec["warmup"])
    intervals = round((in_us(spec["duration"]) - warmup) / every)
    wide.index = np.rint((wide.index.to_numpy() - warmup) / every).astype(int)
    wide = wide.reindex(index=range(intervals), columns=result.table("flows")["id"]).fillna(0.0)
    wide.index = warmup + every * np.arange(intervals)
    return wide


def _part(result: Result, begin: float, end: float) -> pd.DataFrame:
    wide, duration = _all(result), in_us(result.manifest["spec"]["duration"])
    return wide[(wide.index >= begin * duration) & (wide.index < end * duration)]


def _jain(wide: pd.DataFrame) -> float:
    x = wide.to_numpy(dtype=float)
    x = x[x.any(axis=1)]
    return float(np.mean(x.sum(axis=1) ** 2 / (x.shape[1] * (x**2).sum(axis=1))))


def _convergence(result: Result, begin: float) -> float:
    wide = _part(result, begin, 1.0)
    flows = result.table("flows")
    there = flows.loc[flows["start_us"] <= float(wide.index[0]), "id"]
    x = wide[there].to_numpy(dtype=float)
    fair = x.mean(axis=1)
    shared = (x.min(axis=1) >= ENOUGH * fair) & (fair > 0)
    steady = np.convolve(shared, np.ones(STEADY), mode="valid") == STEADY
    if not steady.any():
        return float("nan")
    return float(wide.index[int(np.argmax(steady))] - wide.index[0]) / 1e3
