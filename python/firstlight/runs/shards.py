"""Parts of a sweep or a reproduction for batch systems: ``3/64`` is the third of 64 parts."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from firstlight import core
from firstlight.errors import PlanError, ResultError
from firstlight.runs import leftovers, pool
from firstlight.runs.staging import MARK, replace_text

BUILD = re.compile(r"^build (\S+)$", re.MULTILINE)


@dataclass(frozen=True)
class Shard:
    """One of ``count`` parts, counted from 1."""

    number: int
    count: int

    @classmethod
    def parse(cls, text: str) -> "Shard":
        """Read ``3/64``; raises :class:`PlanError`."""
        found = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text.strip())
        if found and 1 <= int(found[1]) <= int(found[2]):
            return cls(int(found[1]), int(found[2]))
        raise PlanError(f"shard {text!r}: write I/N with I from 1 to N, such as 3/64")

    def of(self, points: Sequence[pool.Point]) -> Sequence[pool.Point]:
        """The shard's points: every ``count``-th one, so that expensive neighbours are spread."""
        return points[self.number - 1 :: self.count]


def same_build(directory: Path) -> None:
    """Note this build in a directory that several shards fill; raises :class:`ResultError` when another build
    has begun it."""
    mark = directory / MARK
    noted = BUILD.search(mark.read_text(encoding="utf-8", errors="replace"))
    if noted is None:
        replace_text(mark, f"{mark.read_text(encoding='utf-8', errors='replace')}build {core.build()}\n")
    elif noted[1] != core.build():
        raise ResultError(
            f"{directory}: its shards have the build {noted[1]}, and this one has {core.build()}: "
            "install that one, or name another directory"
        )


@dataclass(frozen=True)
class Status:
    """How far a sweep has come."""

    points: int
    finished: int
    running: int
    """Points that live processes of this machine, or any of other machines, write at the moment."""

    def __str__(self) -> str:
        left = self.points - self.finished
        return f"{self.finished} of {self.points} points finished, {self.running} running, {left} left"


def status(points: Sequence[pool.Point], store: Path) -> Status:
    """How many of ``points`` have a result in ``store``."""
    keys: set[str] = set()
    left = sum(1 for _ in pool.missing(points, store, keys))
    return Status(len(keys), len(keys) - left, leftovers.live_in(store))


def collected(points: Sequence[pool.Point], store: Path) -> None:
    """Raise :class:`ResultError` unless every point has a result."""
    if left := pool.pending(points, store):
        raise ResultError(
            f"{store}: {len(left)} of {len(points)} points have no result yet, the first is {left[0].label}: "
            "run the shards that are missing"
        )
