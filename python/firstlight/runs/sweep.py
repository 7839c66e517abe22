"""Runs one experiment at every combination of some keys' values, on all cores. A sweep can be resumed."""

import csv
import io
import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from firstlight import core
from firstlight.core import Overrides, Spec
from firstlight.errors import PlanError, ResultError
from firstlight.runs import pool
from firstlight.runs import seeds as seed
from firstlight.runs.grid import Grid
from firstlight.runs.result import DIGEST, Result, Results, load
from firstlight.runs.run import directory_of
from firstlight.runs.shards import Shard, same_build
from firstlight.runs.staging import claim, replace_texts
from firstlight.stored import read_json

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas as pd

INDEX = "sweep.json"
TABLE = "sweep.csv"
STORE = "points"
SHOWN = (
    "circuit_utilization_pct",
    "p50_all_us",
    "p99_all_us",
    "goodput_gbps",
    "fct_last_s",
    "job_p50_us",
    "jobs_gbps",
    "dropped_packets",
    "retransmits",
)
"""The metrics that the command prints; the CSV has all."""
Axes = Mapping[str, "Sequence[Any] | npt.NDArray[Any]"]


@dataclass(frozen=True)
class Sweep:
    """The settings and the result of each point, in the order of the axes (the last varies fastest). Where
    each point has several seeds, they are the last axis."""

    name: str
    axes: dict[str, list[Any]]
    settings: list[dict[str, Any]]
    results: Sequence[Result]
    """The results are opened when they are asked for."""
    rows: list[dict[str, Any]]
    """One row per point: the axes' values, then every summary metric, then the digest."""
    path: Path

    @cached_property
    def frame(self) -> "pd.DataFrame":
        """The rows as a frame."""
        import pandas as pd

        return pd.DataFrame(self.rows)

    @cached_property
    def means(self) -> "pd.DataFrame":
        """One row per point of the axes other than ``seed``: their values, then for every summary metric its
        mean over the seeds and, as ``<metric> +-``, half of the 95 % interval of that mean."""
        import pandas as pd

        axes = [axis for axis in self.axes if axis != seed.KEY]
        groups: dict[str, tuple[dict[str, Any], list[dict[str, Any]]]] = {}
        for row in self.rows:
            point = {axis: row[axis] for axis in axes}
            groups.setdefault(repr(point), (point, []))[1].append(row)
        means = []
        for point, rows in groups.values():
            mean = dict(point)
            for metric in dict.fromkeys(key for row in rows for key in row):
                if metric not in (*self.axes, DIGEST) and (found := seed.mean(r.get(metric) for r in rows)):
                    mean[metric], mean[f"{metric} +-"] = found
            means.append(mean)
        return pd.DataFrame(means)


def axes_of(spec: Spec) -> dict[str, list[Any]]:
    """The ``[sweep]`` table of an experiment: values by dotted key."""
    table = spec.document.get("sweep")
    if isinstance(table, list):
        raise PlanError(f"{spec.path}: sweep: expected a table, found a list: write [sweep]")
    if not isinstance(table, dict) or not table:
        raise PlanError(f"{spec.path}: has no [sweep] table; add one such as\n  [sweep]\n  seed = [1, 2, 3]")
    return check_axes(flatten(table), f"{spec.path}: [sweep]")


HEADER = re.compile(r"^[ \t]*\[", re.MULTILINE)
TABLE_OF_AXES = re.compile(r"^[ \t]*\[[ \t]*sweep[ \t]*\][^\n]*", re.MULTILINE)


def without_axes(spec: Spec) -> Spec:
    """The experiment of one point: without the lines of the ``[sweep]`` table, so that a finished point stays
    finished when the table gets more values. Where these lines cannot be found for sure, all stay."""
    if (found := TABLE_OF_AXES.search(spec.text)) is None:
        return spec
    after = HEADER.search(spec.text, found.end())
    if after:  # other lines keep their numbers
        blank = "\n" * spec.text.count("\n", found.start(), after.start())
        text = spec.text[: found.start()] + blank + spec.text[after.start() :]
    else:
        text = f"{spec.text[: found.start()].rstrip()}\n"
    try:
        same = tomllib.loads(text) == {key: v for key, v in spec.document.items() if key != "sweep"}
    except (tomllib.TOMLDecodeError, RecursionError):
        same = False
    return replace(spec, text=text) if same else spec


def flatten(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested tables as dotted keys: ``voq.small = [..]`` and ``"voq.small" = [..]`` mean the same."""
    flat: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, dict):
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def check_axes(axes: Mapping[str, Any], place: str) -> dict[str, list[Any]]:
    """The axes, checked: each is a non-empty list of different plain values."""
    checked: dict[str, list[Any]] = {}
    if not isinstance(axes, Mapping):
        raise PlanError(f"{place}: {axes!r}: keys with their values are needed, such as {{'seed': [1, 2]}}")
    for key, given in axes.items():
        values = given.tolist() if hasattr(given, "tolist") else given  # an array, a series, an index
        if isinstance(values, str) or not isinstance(values, Sequence) or not values:
            raise PlanError(f"{place}: {key} = {values!r}: a list of values is needed, such as [8, 16]")
        values = [v.item() if hasattr(v, "item") else v for v in values]  # numbers of numpy's types
        if wrong := [v for v in values if not isinstance(v, bool | int | float | str)]:
            raise PlanError(f"{place}: {key}: {wrong[0]} is not a number, a text or true/false")
        if len({repr(v) for v in values}) < len(values):
            raise PlanError(f"{place}: {key}: a value is named twice in {values!r}")
        checked[key] = values
    return checked


@dataclass(frozen=True)
class SweepPlan:
    """A sweep before it is run: its points, all of them checked, and the directory of its results."""

    name: str
    axes: dict[str, list[Any]]
    points: Grid
    path: Path

    @property
    def store(self) -> Path:
        """The directory of the points' results."""
        return self.path / STORE


def plan(
    path: str | Path,
    overrides: Overrides | None = None,
    axes: Axes | None = None,
    *,
    out: str | Path | None = None,
    seeds: int | None = None,
) -> SweepPlan:
    """The sweep of the experiment in ``path``; see :func:`sweep`."""
    spec = Spec.read(path, overrides, sweep=True)
    table = axes_of(spec) if axes is None else check_axes(axes, "axes")
    if seeds is not None:
        if seed.KEY in table:
            raise PlanError("the sweep has an axis seed: take it out, or do not give seeds")
        table[seed.KEY] = seed.seeds_of(spec, seeds)
    name = spec.check().name  # with the table, whose wrong values have their places in the file
    spec = without_axes(spec)
    return SweepPlan(name, table, Grid(spec, table), directory_of(out, name))


def sweep(
    path: str | Path,
    overrides: Overrides | None = None,
    axes: Axes | None = None,
    *,
    out: str | Path | None = None,
    jobs: int | None = None,
    seeds: int | None = None,
    executor: Executor | None = None,
    listener: pool.Listener | None = None,
    patience: float = core.PATIENCE,
) -> Sweep:
    """Run the experiment in ``path`` at every combination of its ``[sweep]`` table, or of ``axes`` if given.

    Results are stored in ``out`` (default ``results/<name>``) under a hash of text (without ``[sweep]``),
    overrides, the files that the text names, and build. A result that is already there is not run again, so
    an interrupted sweep continues. ``jobs`` processes run in parallel (default: all cores); their number does
    not change a result.
    ``seeds`` runs each point with this number of seeds, from the experiment's own on.

    ``executor`` runs the points elsewhere: anything with the protocol of :mod:`concurrent.futures`, such as
    Dask's ``Client.get_executor()``. Where its workers see ``out``, results are stored there by them.
    """
    means = pool.Means(jobs, executor, listener, patience)
    if executor is None:
        pool.prepare()
    return run_plan(plan(path, overrides, axes, out=out, seeds=seeds), means)


def run_plan(plan: SweepPlan, means: pool.Means) -> Sweep:
    """Run the points of ``plan`` that have no result yet; see :func:`sweep`."""
    claim(plan.path)
    known: dict[str, Mapping[str, Any]] = {}

    def listener(point: pool.Point, event: pool.Event, fraction: float) -> None:
        if event == "done" and point.key not in known:  # the next points run meanwhile
            known[point.key] = load(point.target(plan.store)).row
        if means.listener:
            means.listener(point, event, fraction)

    keys: list[str] = []

    def points() -> Iterator[pool.Point]:
        for point in plan.points:
            keys.append(point.key)  # computed once, while points run
            yield point

    pool.run_missing(points(), plan.store, replace(means, listener=listener, rows=known))
    settings = list(plan.points.settings())
    results = Results([plan.store / key for key in keys])
    rows = [
        {**setting, **(known.get(key) or load(plan.store / key).row)}
        for setting, key in zip(settings, keys, strict=True)
    ]
    answer = Sweep(plan.name, plan.axes, settings, results, rows, plan.path)
    _store(answer, keys)
    return answer


def run_shard(plan: SweepPlan, shard: Shard, means: pool.Means) -> None:
    """Run the points of one shard that have no result yet. The index is written when all are collected."""
    claim(plan.path)
    same_build(plan.path)
    pool.run_missing(shard.of(plan.points), plan.store, means)


def _store(sweep: Sweep, keys: Sequence[str]) -> None:
    """Write the index, from which the sweep is opened again, and the table as CSV."""
    index = {
        "name": sweep.name,
        "version": core.version(),
        "axes": sweep.axes,
        "points": [{"set": s, "key": key} for s, key in zip(sweep.settings, keys, strict=True)],
    }
    names = list(dict.fromkeys(name for row in sweep.rows for name in row))
    text = io.StringIO()
    table = csv.DictWriter(text, names, lineterminator="\n")
    table.writeheader()
    table.writerows({name: "" if v != v else v for name, v in row.items()} for row in sweep.rows)
    replace_texts(sweep.path, {INDEX: json.dumps(index, indent=2) + "\n", TABLE: text.getvalue()})


def load_sweep(directory: str | Path) -> Sweep:
    """Open a finished sweep."""
    path = Path(directory)
    try:
        index = read_json(path / INDEX)
        name, axes = str(index["name"]), dict(index["axes"])
        settings, keys = zip(*((dict(p["set"]), str(p["key"])) for p in index["points"]), strict=True)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        raise ResultError(f"{path / INDEX}: not the index of a finished sweep; sweep again") from None
    if lost := next((key for key in keys if not (path / STORE / key).is_dir()), None):
        raise ResultError(f"{path / STORE / lost}: this point of the sweep is missing; sweep again")
    results = Results([path / STORE / key for key in keys])
    rows = [{**setting, **result.row} for setting, result in zip(settings, results, strict=True)]
    return Sweep(name, axes, list(settings), results, rows, path)
