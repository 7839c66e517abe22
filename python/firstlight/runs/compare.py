"""Compares simulated and Linux hosts: one experiment run on both."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from firstlight import core
from firstlight.core import PATIENCE, Overrides, Spec
from firstlight.errors import ResultError
from firstlight.numbers import half_interval, minus, rounded
from firstlight.runs import pool
from firstlight.runs.divergence import Divergence, Parting, divergences, parting, worst_first
from firstlight.runs.result import Result, load
from firstlight.runs.run import HOSTS, Hosts, directory_of
from firstlight.runs.seeds import KEY, seeds_of
from firstlight.runs.staging import claim, replace_text
from firstlight.stored import read_json

INDEX = "compare.json"
STORE = "points"
FOLDER = "compare"
"""Comparisons' folder in ``results``."""
METRICS = (
    "circuit_utilization_pct",
    "p50_all_us",
    "p99_all_us",
    "p50_circuit_us",
    "p99_circuit_us",
    "p50_packet_us",
    "p99_packet_us",
    "goodput_gbps",
    "queue_utilization_pct",
    "queue_wait_mean_us",
    "queue_wait_p50_us",
    "queue_wait_p99_us",
    "queue_peak_packets",
    "dropped_packets",
    "marked_packets",
    "retransmits",
    "timeouts",
    "fct_mean_us",
    "fct_p50_us",
    "fct_p99_us",
    "fct_last_s",
    "job_mean_us",
    "job_p50_us",
    "job_p99_us",
    "job_max_us",
    "jobs_gbps",
)
"""The summary metrics that a comparison shows."""


@dataclass(frozen=True)
class Comparison:
    """One experiment's result on each kind of hosts."""

    name: str
    simulated: Result
    linux: Result
    path: Path
    further: tuple[tuple[Result, Result], ...] = ()
    """The results of further seeds, on simulated and on Linux hosts."""

    @property
    def pairs(self) -> tuple[tuple[Result, Result], ...]:
        """The results of all seeds, on simulated and on Linux hosts."""
        return ((self.simulated, self.linux), *self.further)

    @property
    def frame(self) -> pd.DataFrame:
        """One row per metric: its unit, its values on simulated and on Linux hosts, simulated minus Linux.

        Of several seeds these are means, and ``interval`` is half of the 95 % interval of the difference (nan
        for one seed).
        """
        units: dict[str, str] = {}
        for result in (r for pair in self.pairs for r in pair):
            table = result.table("summary")
            units |= dict(zip(table["metric"], table["unit"], strict=True))
        rows = []
        for metric in METRICS:
            pairs = [(_known(a, metric), _known(b, metric)) for a, b in self.pairs]
            ours, real = (_mean([pair[side] for pair in pairs]) for side in (0, 1))
            apart = np.array([a - b for a, b in pairs if a is not None and b is not None], dtype=np.float64)
            if ours is not None or real is not None:
                rows.append((metric, units[metric], ours, real, minus(ours, real), half_interval(apart)))
        return pd.DataFrame(rows, columns=["metric", "unit", "simulated", "linux", "difference", "interval"])

    @property
    def divergence(self) -> list[Divergence]:
        """The differences between the two runs, one number for each kind of measurement; the largest first.
        Of several seeds: the mean of each."""
        return worst_first([divergences(*pair) for pair in self.pairs])

    @property
    def parting(self) -> Parting | None:
        """The first flow that completes at different times, or on one kind of hosts only."""
        return parting(self.simulated, self.linux)

    def as_dict(self) -> dict[str, Any]:
        """The comparison as ``compare.json`` has it."""
        rows = self.frame.to_dict("records")
        return {
            "name": self.name,
            "build": core.build(),
            "kernel": self.linux.manifest.get("kernel"),
            "digests": {"simulated": self.simulated.digest, "linux": self.linux.digest},
            "keys": {"simulated": self.simulated.manifest["key"], "linux": self.linux.manifest["key"]},
            "further": [[r.manifest["key"] for r in pair] for pair in self.further],
            "metrics": [
                {
                    str(k): rounded(v) if isinstance(v, float) and isfinite(v) else _plain(v)
                    for k, v in r.items()
                }
                for r in rows
            ],
            "divergence": [d.as_dict() for d in self.divergence],
            "parting": self.parting.as_dict() if self.parting else None,
        }


def _mean(values: Sequence[float | None]) -> float | None:
    known = [v for v in values if v is not None]
    return sum(known) / len(known) if known else None


def _known(result: Result, metric: str) -> float | None:
    value = result.summary.get(metric)
    return value if value is not None and isfinite(value) else None


def _plain(value: Any) -> Any:
    return value if isinstance(value, str) else rounded(value) if isfinite(value) else None


def on_hosts(spec: Spec, kind: Hosts) -> Spec:
    """The experiment on hosts of ``kind``."""
    return spec.with_overrides({"hosts.kind": kind})


def points_of(spec: Spec, seeds: int | None = None) -> list[pool.Point]:
    """The two runs, of each seed if there are several. All experiments are checked before any is run."""
    if seeds is None:
        return pool.checked([pool.Point(on_hosts(spec, kind), f"{kind} hosts") for kind in HOSTS])
    return pool.checked(
        [
            pool.Point(on_hosts(spec, kind).with_overrides({KEY: seed}), f"{kind} hosts, seed {seed}")
            for seed in seeds_of(spec, seeds)
            for kind in HOSTS
        ]
    )


@dataclass(frozen=True)
class ComparisonPlan:
    """A comparison before it is run: its two points, both checked, and the directory of its results."""

    name: str
    points: list[pool.Point]
    path: Path


def plan(
    path: str | Path,
    overrides: Overrides | None = None,
    *,
    out: str | Path | None = None,
    seeds: int | None = None,
) -> ComparisonPlan:
    """The comparison of the experiment in ``path``; see :func:`compare`."""
    spec = Spec.read(path, overrides)
    points = points_of(spec, seeds)
    name = spec.check().name
    return ComparisonPlan(name, points, directory_of(out, FOLDER, name))


def compare(
    path: str | Path,
    overrides: Overrides | None = None,
    *,
    out: str | Path | None = None,
    jobs: int | None = None,
    seeds: int | None = None,
    listener: pool.Listener | None = None,
    patience: float = PATIENCE,
) -> Comparison:
    """Run the experiment in ``path`` on simulated and on Linux hosts; with ``seeds`` so often, from its own
    seed on.

    Both results are stored in ``out`` (default ``results/compare/<name>``). A result that is already there is
    not run again.
    """
    return run_plan(
        plan(path, overrides, out=out, seeds=seeds), pool.Means(jobs, listener=listener, patience=patience)
    )


def run_plan(plan: ComparisonPlan, means: pool.Means) -> Comparison:
    """Run the points of ``plan`` that have no result yet; see :func:`compare`."""
    claim(plan.path)
    return _stored(plan.name, pool.run_all(plan.points, plan.path / STORE, means), plan.path)


def _stored(name: str, results: Sequence[Result], directory: Path) -> Comparison:
    done = Comparison(name, results[0], results[1], directory, _further(results))
    replace_text(directory / INDEX, json.dumps(done.as_dict(), indent=1) + "\n")
    return done


def _further(results: Sequence[Result]) -> tuple[tuple[Result, Result], ...]:
    """What belongs together of all results but the first two."""
    return tuple(zip(results[2::2], results[3::2], strict=True))


def load_comparison(directory: str | Path) -> Comparison:
    """Open a stored comparison."""
    path = Path(directory)
    try:
        index = read_json(path / INDEX)
        name, keys = str(index["name"]), [str(index["keys"][kind]) for kind in HOSTS]
        keys += [str(key) for pair in index.get("further", []) for key in pair]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as e:
        raise ResultError(f"{path / INDEX}: not the index of a comparison ({e!r}); compare again") from None
    results = [load(path / STORE / key) for key in keys]
    return Comparison(name, results[0], results[1], path, _further(results))
