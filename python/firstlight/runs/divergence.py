"""Differences between two runs of one experiment: one number for each kind of measurement."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from firstlight.errors import ResultError
from firstlight.numbers import rounded
from firstlight.runs.result import UTILIZATION, Result

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Divergence:
    """One difference between two runs; 0 where they agree."""

    name: str
    value: float | None
    """The difference, ``None`` where one of the runs did not measure it."""
    unit: str
    definition: str

    def as_dict(self) -> dict[str, Any]:
        """The difference as ``compare.json`` has it."""
        return {
            "name": self.name,
            "value": rounded(self.value),
            "unit": self.unit,
            "definition": self.definition,
        }


def divergences(simulated: Result, linux: Result) -> list[Divergence]:
    """Every measure of :data:`MEASURES` for two runs."""
    found = []
    for name, unit, definition, measure in MEASURES:
        try:
            value = measure(simulated, linux)
        except (ResultError, KeyError):
            value = None
        known = value is not None and np.isfinite(value)
        found.append(
            Divergence(name, float(value) if value is not None and known else None, unit, definition)
        )
    return found


def worst_first(seeds: Sequence[Sequence[Divergence]]) -> list[Divergence]:
    """The mean of each measure over the seeds that have it: the largest first, what is not known last."""
    found = []
    for same in zip(*seeds, strict=True):
        known = [d.value for d in same if d.value is not None]
        found.append(replace(same[0], value=sum(known) / len(known) if known else None))
    return sorted(found, key=lambda d: -1.0 if d.value is None else abs(d.value), reverse=True)


def utilization(simulated: Result, linux: Result) -> float | None:
    """Circuit utilization, simulated minus Linux, in points."""
    return simulated.summary[UTILIZATION] - linux.summary[UTILIZATION]


def latency(simulated: Result, linux: Result) -> float | None:
    """Distance between the distributions of packet latency, divided by Linux's mean, in percent."""
    return _relative(*(latencies(r.latency) for r in (simulated, linux)))


def voq(simulated: Result, linux: Result) -> float | None:
    """Mean absolute difference of VOQ length, in packets."""
    return float(np.mean(np.abs(_difference(simulated, linux, "voq_packets"))))


def waits(simulated: Result, linux: Result) -> float | None:
    """Distance between the distributions of a watched queue's waits, divided by Linux's mean, in percent.
    Both are summed over the queues."""
    ours, theirs = (waits_of(result) for result in (simulated, linux))
    if not theirs or ours.keys() != theirs.keys():
        return None
    mean = sum(float(np.sum(values * shares)) for values, shares in theirs.values())
    apart = sum(wasserstein(ours[name], theirs[name]) for name in theirs)
    return 100 * apart / mean if mean > 0 else None


def sequence(simulated: Result, linux: Result) -> float | None:
    """Mean absolute difference of the sequence curves, divided by what a flow moves in a week on Linux, in
    percent."""
    apart = float(np.mean(np.abs(_difference(simulated, linux, "sequence_bytes"))))
    series = linux.series
    weeks = float(series["time_us"].max()) / float(linux.week["end_us"].max())
    moved = float(series["sequence_bytes"].iloc[-1] - series["sequence_bytes"].iloc[0]) / weeks
    return 100 * apart / moved if moved > 0 else None


def completion(simulated: Result, linux: Result) -> float | None:
    """Distance between the distributions of completion time, divided by Linux's mean, in percent."""
    return _relative(*(completions(r) for r in (simulated, linux)))


def goodput(simulated: Result, linux: Result) -> float | None:
    """Mean absolute difference of the bytes that each flow has delivered per second of the run, divided by
    Linux's mean, in percent."""
    ours, theirs = (
        r.flows["bytes_received"].to_numpy(dtype=float) / float(r.manifest["elapsed_us"])
        for r in (simulated, linux)
    )
    return 100 * float(np.abs(ours - theirs).mean() / theirs.mean()) if theirs.any() else None


def unfinished(simulated: Result, linux: Result) -> float | None:
    """Flows that completed in one of the runs only."""
    ours, theirs = (np.isfinite(r.flows["fct_us"].to_numpy(dtype=float)) for r in (simulated, linux))
    return float((ours != theirs).sum())


def counted(metric: str) -> "Measure":
    """The difference of a count, divided by Linux's, or by one where Linux counted none, in percent."""

    def apart(simulated: Result, linux: Result) -> float | None:
        ours, theirs = (r.summary[metric] for r in (simulated, linux))
        return 100 * abs(ours - theirs) / max(theirs, 1.0)

    return apart


@dataclass(frozen=True)
class Parting:
    """The first difference of two runs: the first flow that completes at different times, or on one side
    only."""

    flow: int
    simulated_us: float
    """When it completed, since the start of the run; nan: it did not."""
    linux_us: float

    @property
    def at_us(self) -> float:
        """The moment from which the runs differ for certain."""
        return float(np.nanmin([self.simulated_us, self.linux_us]))

    def as_dict(self) -> dict[str, Any]:
        """The parting as ``compare.json`` has it."""
        ends = {"simulated_us": self.simulated_us, "linux_us": self.linux_us}
        return {"flow": self.flow} | {k: rounded(v) if v == v else None for k, v in ends.items()}

    def __str__(self) -> str:
        ends = [f"{at:,.1f} us" if at == at else "never" for at in (self.simulated_us, self.linux_us)]
        return f"flow {self.flow} completes at {ends[0]} on simulated hosts, on Linux hosts at {ends[1]}"


APART = 0.01
"""Completion times that differ by this part are different."""


def parting(simulated: Result, linux: Result) -> Parting | None:
    """The earliest completion that the other run does not have within :data:`APART`; none where all agree."""
    ours, theirs = (r.flows[["start_us", "fct_us"]].to_numpy(dtype=float) for r in (simulated, linux))
    times = np.stack([ours[:, 1], theirs[:, 1]])
    known = np.isfinite(times)
    with np.errstate(invalid="ignore"):
        apart = np.abs(times[0] - times[1]) > APART * times[1]
    differ = np.flatnonzero(known.any(axis=0) & (apart | (known[0] != known[1])))
    if not len(differ):
        return None
    ends = np.stack([ours.sum(axis=1), theirs.sum(axis=1)])
    first = min(differ, key=lambda flow: float(np.nanmin(ends[:, flow])))
    return Parting(int(simulated.flows["id"].iloc[first]), *map(float, ends[:, first]))


def jobs(simulated: Result, linux: Result) -> float | None:
    """Mean absolute difference of the times of jobs that completed in both runs, divided by Linux's mean, in
    percent."""
    ours, theirs = (r.jobs["duration_us"].to_numpy(dtype=float) for r in (simulated, linux))
    both = np.isfinite(ours) & np.isfinite(theirs)
    return 100 * float(np.abs(ours - theirs)[both].mean() / theirs[both].mean()) if both.any() else None


Measure = Callable[[Result, Result], float | None]
MEASURES: tuple[tuple[str, str, str, Measure], ...] = (
    ("utilization", "points", "circuit utilization, simulated minus Linux", utilization),
    (
        "latency",
        "%",
        "1-Wasserstein distance of the distributions of the pair's packet latencies, by Linux's mean",
        latency,
    ),
    (
        "waits",
        "%",
        "1-Wasserstein distance of the distributions of a watched queue's waits (measure.queues), by Linux's "
        "mean, both summed over the queues",
        waits,
    ),
    ("voq", "packets", "mean absolute difference of the pair's VOQ length over the folded weeks", voq),
    (
        "sequence",
        "%",
        "mean absolute difference of the mean sequence curves over the folded weeks, by what a flow moves in "
        "a week on Linux",
        sequence,
    ),
    (
        "completion",
        "%",
        "1-Wasserstein distance of the distributions of flow completion times, by Linux's mean",
        completion,
    ),
    (
        "goodput",
        "%",
        "mean absolute difference of the flows' goodput, each with itself, by Linux's mean",
        goodput,
    ),
    ("unfinished", "flows", "flows that completed on one kind of hosts only", unfinished),
    *(
        (name, "%", f"difference of {what} by Linux's, or by one where Linux counted none", counted(metric))
        for name, what, metric in (
            ("drops", "drops", "dropped_packets"),
            ("marks", "marks", "marked_packets"),
            ("timeouts", "retransmission timeouts", "timeouts"),
            ("retransmissions", "retransmissions", "retransmits"),
        )
    ),
    (
        "jobs",
        "%",
        "mean absolute difference of the times of jobs, each with itself, by Linux's mean",
        jobs,
    ),
)
Distribution = tuple[Array, Array]
"""Sorted values, and the share of each."""


def latencies(frame: pd.DataFrame, network: str | None = None) -> Distribution:
    """The distribution of packet latency (us): over one network, or over all."""
    part = frame if network is None else frame[frame["network"] == network]
    return _counted(part, "latency_us")


def waits_of(result: Result) -> dict[str, Distribution]:
    """The distribution of waits (us) at each watched queue that had packets."""
    groups = result.table("queue_waits").groupby("name")
    return {str(name): _counted(part, "wait_us") for name, part in groups}


def _counted(frame: pd.DataFrame, column: str) -> Distribution:
    """The distribution of ``column``; each row counts its ``packets``."""
    total = frame.groupby(column)["packets"].sum().sort_index()
    weights = total.to_numpy(dtype=float)
    return total.index.to_numpy(dtype=float), weights / max(weights.sum(), 1.0)


def completions(result: Result) -> Distribution:
    """The distribution of completion times (us) of the flows that completed."""
    times = np.sort(result.flows["fct_us"].dropna().to_numpy(dtype=float))
    return times, np.full(len(times), 1 / max(len(times), 1))


def wasserstein(a: Distribution, b: Distribution) -> float:
    """1-Wasserstein distance: the area between the cumulative distributions."""
    at = np.sort(np.concatenate([a[0], b[0]]))
    between = np.diff(at)
    return float(np.sum(np.abs(_cumulative(a, at[:-1]) - _cumulative(b, at[:-1])) * between))


def _cumulative(of: Distribution, at: Array) -> Array:
    values, shares = of
    reached: Array = np.concatenate([[0.0], np.cumsum(shares)])[np.searchsorted(values, at, side="right")]
    return reached


def _relative(simulated: Distribution, linux: Distribution) -> float | None:
    if not len(simulated[0]) or not len(linux[0]):
        return None
    mean = float(np.sum(linux[0] * linux[1]))
    return 100 * wasserstein(simulated, linux) / mean if mean > 0 else None


def _difference(simulated: Result, linux: Result, column: str) -> Array:
    """A column of ``series``, simulated minus Linux, at the times of Linux's series."""
    a, b = simulated.series, linux.series
    at = b["time_us"].to_numpy(dtype=float)
    there: Array = np.interp(at, a["time_us"].to_numpy(dtype=float), a[column].to_numpy(dtype=float))
    apart: Array = there - b[column].to_numpy(dtype=float)
    return apart
