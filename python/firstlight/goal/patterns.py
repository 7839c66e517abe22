"""Communication patterns of other applications, by message size."""

from firstlight.goal.collectives import all_reduce_ring, all_to_all
from firstlight.goal.grid import Grid, sides_of
from firstlight.goal.schedule import Schedule


def halo(schedule: Schedule, size: int, iterations: int, compute: int) -> None:
    """A stencil on a torus in two dimensions: ``size`` bytes to each of four neighbours, then a
    computation."""
    grid = Grid(sides_of(schedule.ranks, 2))
    for _ in range(iterations):
        schedule.exchange(
            message for axis in (0, 1) for step in (1, -1) for message in grid.shifts(axis, step, size)
        )
        schedule.compute(compute)


def exchange_all(schedule: Schedule, size: int, iterations: int, compute: int) -> None:
    """``size`` bytes from each rank to each other."""
    for _ in range(iterations):
        schedule.compute(compute)
        all_to_all(schedule, size)


def reduce_all(schedule: Schedule, size: int, iterations: int, compute: int) -> None:
    """A vector of ``size`` bytes is summed over all ranks, in a ring."""
    for _ in range(iterations):
        schedule.compute(compute)
        all_reduce_ring(schedule, size)


def wavefront(schedule: Schedule, size: int, iterations: int, compute: int) -> None:
    """Sweeps over a grid in two dimensions from each of its corners in turn: a rank waits for its
    neighbours of both sides that are nearer to the corner, computes, and sends ``size`` bytes to
    those that are further (Koch, Baker and Alcouffe, "Solution of the first-order form of the 3-D
    discrete ordinates equation on a massively parallel processor", 1992)."""
    grid = Grid(sides_of(schedule.ranks, 2))
    rows, columns = grid.sides
    corners = [(1, 1), (1, -1), (-1, 1), (-1, -1)]
    for sweep in range(iterations):
        down, right = corners[sweep % 4]
        for diagonal in range(rows + columns - 1):
            front = [
                rank
                for rank, (row, column) in enumerate(grid.places)
                if (row if down > 0 else rows - 1 - row) + (column if right > 0 else columns - 1 - column)
                == diagonal
            ]
            schedule.compute_on(front, compute)
            schedule.exchange(
                (rank, grid.neighbour(rank, axis, step), size)
                for rank in front
                for axis, step in [(0, down), (1, right)]
                if 0 <= grid.places[rank][axis] + step < grid.sides[axis]
            )
