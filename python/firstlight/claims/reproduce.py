"""Runs claims: every point of the chosen ones, once each, on all cores; then the rows."""

import json
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, get_args

from firstlight import core
from firstlight.claims import rows
from firstlight.claims.agreement import Agreement, agreements
from firstlight.claims.claim import Claim, Paper, Platform, RunKey
from firstlight.claims.form import Mode
from firstlight.claims.outcome import Outcome
from firstlight.claims.read import find, select
from firstlight.claims.rows import Row
from firstlight.claims.scoreboard import Score, by_paper, score
from firstlight.errors import PlanError, ResultError
from firstlight.runs import pool
from firstlight.runs.result import load
from firstlight.runs.run import HOSTS, Hosts, directory_of
from firstlight.runs.shards import Shard, same_build
from firstlight.runs.staging import claim, real, replace_text
from firstlight.runs.sweep import STORE
from firstlight.stored import read_json

INDEX = "reproduction.json"
VERDICT = "verdict.json"
FILES = (INDEX, STORE, VERDICT, "figures", "report.html")
"""The files of a reproduction."""
RunsOfClaims = dict[tuple[str, RunKey], pool.Point]
"""The runs of some claims, by the claim's name."""


@dataclass(frozen=True)
class Reproduction:
    """The outcomes of the chosen claims and where they lie."""

    mode: Mode
    outcomes: list[Outcome]
    path: Path
    jobs: int | None = None
    """Processes that compute rows and draw figures; one for each core if ``None``."""

    @property
    def hosts(self) -> list[Hosts]:
        """The kinds of hosts that were run."""
        return [h for h in HOSTS if any(h in o.hosts for o in self.outcomes)]

    @property
    def papers(self) -> list[Paper]:
        """The papers that the claims are from."""
        return list(dict.fromkeys(o.claim.source for o in self.outcomes))

    @property
    def rows(self) -> list[list[Row]]:
        """The rows of each claim."""
        return [its for its, _ in self._judged]

    @cached_property
    def scores(self) -> list[Score]:
        """The verdict on each claim."""
        return by_paper([its for _, its in self._judged])

    @cached_property
    def _judged(self) -> list[tuple[list[Row], Score]]:
        return pool.mapped(_rows_and_score, self.outcomes, self.jobs)

    @cached_property
    def agreements(self) -> list[Agreement]:
        """Mean differences for each figure."""
        return [a for o, its in zip(self.outcomes, self.rows, strict=True) for a in agreements(o, its)]


def _rows_and_score(outcome: Outcome) -> tuple[list[Row], Score]:
    """What a worker computes of a claim: it reads the results' tables, which the parent never does."""
    return list(rows.rows(outcome)), score(outcome)


def plan(claims: Sequence[Claim], mode: Mode, hosts: Sequence[Hosts] = ("simulated",)) -> RunsOfClaims:
    """Every run of the claims, each checked whole by the core before any is run; the most expensive first."""
    points = {(c.name, key): c.point(key, mode) for c in claims for key in c.runs(mode, hosts)}
    pool.checked(list(points.values()))
    return dict(sorted(points.items(), key=lambda item: -item[1].weight))


def run(
    claims: Sequence[Claim], mode: Mode, points: RunsOfClaims, out: Path, means: pool.Means | None = None
) -> Reproduction:
    """Reproduce ``claims`` (planned as ``points``) into ``out``; points that lie there already are not run
    again."""
    _claim(out)
    means = means or pool.Means()
    results = pool.run_all(list(points.values()), out / STORE, means)
    outcomes = {c.name: Outcome(c, mode) for c in claims}
    for (name, key), result in zip(points, results, strict=True):
        outcomes[name].results[key] = result
    reproduction = Reproduction(mode, list(outcomes.values()), out, means.jobs)
    _store(reproduction)
    return reproduction


def reproduce(
    *names: str,
    mode: Mode = "quick",
    hosts: Sequence[Hosts] = ("simulated",),
    out: str | Path | None = None,
    jobs: int | None = None,
    executor: Executor | None = None,
    listener: pool.Listener | None = None,
) -> Reproduction:
    """Repeat published figures, all or those with ``names`` as ``firstlight list`` prints them, and judge the
    papers' claims.

    Points are stored in ``out`` (default ``results``) and are not run again; ``jobs`` and ``executor`` are as
    of :func:`firstlight.sweep`. ``firstlight report DIR`` writes the page. Raises :class:`PlanError` for a
    name that there is not.
    """
    if wrong := [mode] if mode not in get_args(Mode) else [h for h in hosts if h not in HOSTS]:
        raise PlanError(
            f"{wrong[0]!r}: write {' or '.join(get_args(Mode))} as mode, {' or '.join(HOSTS)} as hosts"
        )
    claims = select(find(), names)
    means = pool.Means(jobs, executor, listener)
    if executor is None:
        pool.prepare()
    return run(claims, mode, plan(claims, mode, hosts), directory_of(out), means)


def _claim(out: Path) -> None:
    """Make ``out`` the directory of a reproduction. The default one holds other results, too."""
    claim(out, FILES if real(out) == real(directory_of(None)) else ())


def run_shard(points: RunsOfClaims, out: Path, shard: Shard, means: pool.Means) -> None:
    """Run the points of one shard that have no result yet."""
    _claim(out)
    same_build(out)
    pool.run_missing(shard.of(list(points.values())), out / STORE, means)


def _store(reproduction: Reproduction) -> None:
    """Write the index, by which the report can be made again, and the rows as JSON."""
    index = {
        "mode": reproduction.mode,
        "build": core.build(),
        "claims": [
            {
                "name": o.claim.name,
                "results": [
                    {**platform._asdict(), "curve": curve, "at": at, "key": r.manifest["key"]}
                    for (platform, curve, at), r in o.results.items()
                ],
            }
            for o in reproduction.outcomes
        ],
    }
    replace_text(reproduction.path / INDEX, json.dumps(index) + "\n")
    replace_text(reproduction.path / VERDICT, as_json(reproduction))


def as_json(reproduction: Reproduction) -> str:
    """The rows as ``--json`` prints them: a list of objects."""
    return json.dumps([row.as_dict() for row in chain.from_iterable(reproduction.rows)], indent=1) + "\n"


def load_reproduction(directory: Path) -> Reproduction:
    """Open the results that an earlier ``firstlight reproduce`` has stored in ``directory``."""
    try:
        index = read_json(directory / INDEX)
        entries = [(entry["name"], dict(map(_run_of, entry["results"]))) for entry in index["claims"]]
        mode = index["mode"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as e:
        file = directory / INDEX
        raise ResultError(
            f"{file}: not the index of a reproduction of this version ({e!r}); run it again"
        ) from None
    claims, outcomes = {c.name: c for c in find()}, []
    for name, keys in entries:
        if name not in claims:
            raise ResultError(f"{directory}: the claim {name} is no longer among the experiments")
        results = {run: load(directory / STORE / key) for run, key in keys.items()}
        outcomes.append(Outcome(claims[name], mode, results))
    return Reproduction(mode, outcomes, directory)


def _run_of(entry: dict[str, Any]) -> tuple[RunKey, str]:
    """A run of the index, and the key of its result."""
    return (Platform(entry["hosts"], entry["time_scale"]), entry["curve"], tuple(entry["at"])), entry["key"]
