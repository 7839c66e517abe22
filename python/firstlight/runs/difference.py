"""Differences between two results, or between two sweeps of the same points: settings, digests, metrics."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from firstlight.errors import ResultError
from firstlight.numbers import half_interval
from firstlight.runs import sweep
from firstlight.runs.grid import label
from firstlight.runs.result import Result, is_result, load

UNKNOWN = "-"
SAID = ("version", "seed", "kernel", "inputs", "digest")
"""Entries of manifests that are compared besides the experiment."""


@dataclass(frozen=True)
class Difference:
    """One or more pairs of results that belong together."""

    pairs: list[tuple[Result, Result]]
    alone: list[str]
    """Points that only one side has."""

    @property
    def same_digests(self) -> int:
        """How many pairs had the same packets at the same times."""
        return sum(a.digest == b.digest for a, b in self.pairs)

    @property
    def settings(self) -> list[tuple[str, str, str]]:
        """Keys of the experiment, and what else manifests say, that differ in the first pair: key, value in
        A, value in B."""
        a, b = (_flat(r.manifest) for r in self.pairs[0])
        return [
            (key, a.get(key, UNKNOWN), b.get(key, UNKNOWN))
            for key in dict.fromkeys([*a, *b])
            if a.get(key) != b.get(key)
        ]

    @property
    def frame(self) -> pd.DataFrame:
        """One row per metric that differs: unit, means of A and B, B minus A, and half of the 95 % interval
        of that difference, by the pairs (nan for one pair)."""
        units: dict[str, str] = {}
        for result in self.pairs[0]:
            table = result.table("summary")
            units |= dict(zip(table["metric"], table["unit"], strict=True))
        rows = []
        for metric, unit in units.items():
            both = [(a.summary.get(metric, np.nan), b.summary.get(metric, np.nan)) for a, b in self.pairs]
            values = np.array(both, dtype=float)
            values = values[np.isfinite(values).all(axis=1)]
            if len(values) and (values[:, 0] != values[:, 1]).any():
                apart = values[:, 1] - values[:, 0]
                rows.append((metric, unit, *values.mean(axis=0), apart.mean(), half_interval(apart)))
        return pd.DataFrame(rows, columns=["metric", "unit", "A", "B", "B - A", "interval"])


def difference(a: str | Path, b: str | Path) -> Difference:
    """Compare two stored results, or two finished sweeps point by point. Raises :class:`ResultError` when
    they have nothing in common."""
    one, other = _points(Path(a)), _points(Path(b))
    if len(one) == len(other) == 1:
        return Difference(list(zip(one.values(), other.values(), strict=True)), [])
    common = [key for key in one if key in other]
    if not common:
        raise ResultError(
            f"{a} and {b} have no point in common: name sweeps of the same axes, or two results"
        )
    alone = [key for key in dict.fromkeys([*one, *other]) if not (key in one and key in other)]
    return Difference([(one[key], other[key]) for key in common], alone)


def _points(path: Path) -> dict[str, Result]:
    """The results in a directory by their settings."""
    if is_result(path):
        return {"": load(path)}
    if not (path / sweep.INDEX).is_file():
        raise ResultError(f"{path}: holds no result and no finished sweep; name a directory that does")
    done = sweep.load_sweep(path)
    return {label(s): r for s, r in zip(done.settings, done.results, strict=True)}


def _flat(manifest: Mapping[str, Any]) -> dict[str, str]:
    """The experiment's keys, dotted, and the other entries that are compared, as texts."""
    said = {entry: manifest[entry] for entry in SAID if entry in manifest}
    return dict(_leaves(manifest.get("spec", {}), "")) | dict(_leaves(said, ""))


def _leaves(value: Any, path: str) -> Iterator[tuple[str, str]]:
    items: Any = None
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
        items = enumerate(value)
    if items is None:
        yield path, str(value)
        return
    for key, item in items:
        yield from _leaves(item, f"{path}.{key}" if path else str(key))
