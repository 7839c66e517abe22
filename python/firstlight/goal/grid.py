"""Ranks on a grid: sides, neighbours."""

from itertools import product
from math import isqrt

from firstlight.errors import SpecError


def is_power_of_two(ranks: int) -> bool:
    return ranks > 0 and ranks & (ranks - 1) == 0


def power_of_two(name: str, ranks: int) -> None:
    """Raises SpecError unless ``ranks`` is a power of two, from 2."""
    if ranks < 2 or not is_power_of_two(ranks):
        raise SpecError(f"--ranks: {name} runs on a power of two ranks, not on {ranks}: write 2, 4, 8 or so")


def side_of(name: str, ranks: int) -> int:
    """The side of a square of so many ranks; raises SpecError where there is none."""
    side = isqrt(ranks)
    if side < 2 or side * side != ranks:
        raise SpecError(f"--ranks: {name} runs on a square of ranks, not on {ranks}: write 4, 9, 16 or so")
    return side


def sides_of(ranks: int, dimensions: int) -> list[int]:
    """Sides of a grid of ``ranks``, as equal as they can be, the longest first."""
    sides = [1] * dimensions
    factor, left = 2, ranks
    factors = []
    while left > 1:
        while left % factor:
            factor += 1
        factors.append(factor)
        left //= factor
    for factor in reversed(factors):
        sides[sides.index(min(sides))] *= factor
    return sorted(sides, reverse=True)


class Grid:
    """Ranks on a torus, the last coordinate the fastest."""

    def __init__(self, sides: list[int]) -> None:
        self.sides = sides
        self.places = list(product(*(range(side) for side in sides)))
        self._ranks = {place: rank for rank, place in enumerate(self.places)}

    def neighbour(self, rank: int, axis: int, step: int) -> int:
        """The rank ``step`` further on an axis, around the edge."""
        place = list(self.places[rank])
        place[axis] = (place[axis] + step) % self.sides[axis]
        return self._ranks[tuple(place)]

    def shifts(self, axis: int, step: int, size: int) -> list[tuple[int, int, int]]:
        """Every rank's message to its neighbour."""
        return [(rank, self.neighbour(rank, axis, step), size) for rank in range(len(self.places))]
