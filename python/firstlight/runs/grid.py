"""The points of a sweep: every combination of the axes' values, made when they are asked for.

Small sweeps are checked point by point before any is run, of their seeds the smallest and the largest. Of
large ones every value of every axis is checked, and every combination of those that change which files or
which kernel a point needs; a worker checks a point before it runs it.
"""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, overload

from firstlight.core import Spec
from firstlight.errors import PlanError, SpecError
from firstlight.runs import seeds
from firstlight.runs.pool import Point
from firstlight.runs.run import Surroundings

CHECKED = 2_000
"""A sweep of at most this number of points is checked whole before it begins."""
Setting = dict[str, Any]


class Grid(Sequence[Point]):
    """Every combination of some keys' values, in the order of the axes (the last varies fastest)."""

    def __init__(self, spec: Spec, axes: Mapping[str, Sequence[Any]]) -> None:
        self._spec = spec
        self._axes = {key: list(values) for key, values in axes.items()}
        self._count = math.prod(len(values) for values in self._axes.values())
        if self._count > seeds.MOST_POINTS:
            raise PlanError(
                f"{self._count:,} points are more than {seeds.MOST_POINTS:,}, which take days: use fewer "
                "values, or several sweeps"
            )
        self._deciding: list[str] = []
        self._surroundings: dict[tuple[str, ...], Surroundings] = {}
        self._survey()

    def settings(self) -> Iterator[Setting]:
        """The values of each point."""
        for values in itertools.product(*self._axes.values()):
            yield dict(zip(self._axes, values, strict=True))

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, at: int) -> Point: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Point]: ...
    def __getitem__(self, at: int | slice) -> Point | Sequence[Point]:
        if isinstance(at, slice):
            return GridSlice(self, range(self._count)[at])
        return self._point(self._setting(range(self._count)[at]))

    def __iter__(self) -> Iterator[Point]:
        return map(self._point, self.settings())

    def _setting(self, number: int) -> Setting:
        values = []
        for key in reversed(self._axes):
            number, at = divmod(number, len(self._axes[key]))
            values.append((key, self._axes[key][at]))
        return dict(reversed(values))

    def _point(self, setting: Setting) -> Point:
        known = self._surroundings[tuple(repr(setting[key]) for key in self._deciding)]
        return Point(self._spec.with_overrides(setting), label(setting), surroundings=known)

    def _survey(self) -> None:
        """Check every value, and find what decides which files and which kernel a point needs."""
        first = self._setting(0)
        usual = self._checked(first)
        plain = [seeds.KEY] if self._count <= CHECKED else list(self._axes)
        self._deciding = [
            key for key in self._axes if key not in plain or not self._is_plain(key, first, usual)
        ]
        for values in itertools.product(*(self._axes[key] for key in self._deciding)):
            chosen = dict(zip(self._deciding, values, strict=True))
            self._surroundings[tuple(map(repr, values))] = self._checked({**first, **chosen})

    def _is_plain(self, key: str, first: Setting, usual: Surroundings) -> bool:
        try:
            return all(
                self._checked({**first, key: value}) == usual
                for value in deciding_values(key, self._axes[key])
            )
        except SpecError:
            return False  # it may be right with other values of other axes, which is then found out

    def _checked(self, setting: Setting) -> Surroundings:
        return Point(self._spec.with_overrides(setting), label(setting)).known


class GridSlice(Sequence[Point]):
    """Some points of a grid."""

    def __init__(self, grid: Grid, numbers: range) -> None:
        self._grid = grid
        self._numbers = numbers

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, at: int) -> Point: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Point]: ...
    def __getitem__(self, at: int | slice) -> Point | Sequence[Point]:
        if isinstance(at, slice):
            return GridSlice(self._grid, self._numbers[at])
        return self._grid[self._numbers[at]]


def deciding_values(key: str, values: Sequence[Any]) -> Sequence[Any]:
    """The values of an axis that are checked for all of them: the smallest and the largest of seeds."""
    if key == seeds.KEY and all(type(value) is int for value in values):
        return sorted({min(values), max(values)})
    return values


def label(setting: Mapping[str, Any]) -> str:
    """A point as a person names it: ``voq.small=16 voq.large=50``."""
    return " ".join(f"{k}={v}" for k, v in setting.items()) or "as in the file"
