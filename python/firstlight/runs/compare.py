"""Comparisons: one experiment on simulated and on Linux hosts, side by side."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

import pandas as pd

from firstlight import core
from firstlight.core import PATIENCE, Overrides, Spec
from firstlight.errors import ResultError, SpecError
from firstlight.runs import pool
from firstlight.runs.divergence import Divergence, divergences
from firstlight.runs.numbers import minus, rounded
from firstlight.runs.result import Result, load
from firstlight.runs.run import HOSTS, Hosts
from firstlight.runs.staging import replace_text

INDEX = "compare.json"
STORE = "points"
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
"""Summary metrics that are set side by side."""


@dataclass(frozen=True)
class Comparison:
    """One experiment's result on each kind of hosts."""

    name: str
    simulated: Result
    linux: Result
    path: Path

    @property
    def frame(self) -> pd.DataFrame:
        """Metric, unit, on simulated hosts, on Linux hosts, the first minus the second."""
        units: dict[str, str] = {}
        for result in (self.simulated, self.linux):
            table = result.table("summary")
            units |= dict(zip(table["metric"], table["unit"], strict=True))
        rows = []
        for metric in METRICS:
            ours, real = (_known(r, metric) for r in (self.simulated, self.linux))
            if ours is not None or real is not None:
                rows.append((metric, units[metric], ours, real, minus(ours, real)))
        return pd.DataFrame(rows, columns=["metric", "unit", "simulated", "linux", "difference"])

    @property
    def divergence(self) -> list[Divergence]:
        """One number for each kind of measurement."""
        return divergences(self.simulated, self.linux)

    def as_dict(self) -> dict[str, Any]:
        """As ``compare.json`` has it."""
        rows = self.frame.to_dict("records")
        return {
            "name": self.name,
            "build": core.build(),
            "kernel": self.linux.manifest.get("kernel"),
            "digests": {"simulated": self.simulated.digest, "linux": self.linux.digest},
            "keys": {"simulated": self.simulated.manifest["key"], "linux": self.linux.manifest["key"]},
            "metrics": [
                {
                    str(k): rounded(v) if isinstance(v, float) and isfinite(v) else _plain(v)
                    for k, v in r.items()
                }
                for r in rows
            ],
            "divergence": [d.as_dict() for d in self.divergence],
        }


def _known(result: Result, metric: str) -> float | None:
    value = result.summary.get(metric)
    return value if value is not None and isfinite(value) else None


def _plain(value: Any) -> Any:
    return value if isinstance(value, str) else rounded(value) if isfinite(value) else None


def on_hosts(spec: Spec, kind: Hosts) -> Spec:
    """The same experiment on hosts of ``kind``."""
    return spec.with_overrides({"hosts.kind": kind})


def points_of(spec: Spec) -> list[pool.Point]:
    """The two runs, each checked whole by the core before any is run."""
    points = [pool.Point(on_hosts(spec, kind), f"{kind} hosts") for kind in HOSTS]
    for point in points:
        try:
            core.inspect(point.spec)
        except SpecError as e:
            raise SpecError(f"{point.label}: {e}") from None
    return points


def directory_of(spec: Spec, out: str | Path | None) -> Path:
    """Where a comparison lies: ``out``, else ``results/compare/<name>``."""
    name = spec.document().get("name") or Path(spec.path).stem
    directory = Path(out) if out is not None else Path("results") / "compare" / str(name)
    if directory.is_file():
        raise ResultError(f"{directory}: is a file; name a directory")
    return directory


def compare(
    path: str | Path,
    overrides: Overrides | None = None,
    *,
    out: str | Path | None = None,
    jobs: int | None = None,
    listener: pool.Listener | None = None,
    patience: float = PATIENCE,
) -> Comparison:
    """Run the experiment in ``path`` on simulated and on Linux hosts, side by side.

    Both results lie in ``out`` (default ``results/compare/<name>``); what is there already is not run again.
    """
    spec = Spec.read(path, overrides)
    points = points_of(spec)
    directory = directory_of(spec, out)
    results = pool.run_all(points, directory / STORE, jobs=jobs, listener=listener, patience=patience)
    return _stored(str(spec.document().get("name") or Path(spec.path).stem), results, directory)


def _stored(name: str, results: Sequence[Result], directory: Path) -> Comparison:
    simulated, linux = results
    done = Comparison(name, simulated, linux, directory)
    replace_text(directory / INDEX, json.dumps(done.as_dict(), indent=1) + "\n")
    return done


def load_comparison(directory: str | Path) -> Comparison:
    """Open a comparison that was made before."""
    path = Path(directory)
    try:
        index = json.loads((path / INDEX).read_text(encoding="utf-8"))
        keys = index["keys"]
        simulated, linux = (load(path / STORE / keys[kind]) for kind in HOSTS)
    except (OSError, ValueError, KeyError, TypeError) as e:
        raise ResultError(f"{path}: not a comparison ({e})") from None
    return Comparison(str(index["name"]), simulated, linux, path)
