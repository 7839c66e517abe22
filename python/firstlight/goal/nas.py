"""The communication of NAS parallel benchmarks BT, CG, FT, IS and MG, from their published
decompositions.

Sources: Bailey et al., "The NAS Parallel Benchmarks", RNR-94-007, 1994 (problems, classes S, W and
A); Bailey et al., "The NAS Parallel Benchmarks 2.0", NAS-95-020, 1995 (decompositions); Naik, "A
scalable implementation of the NAS parallel benchmark BT on distributed memory systems", IBM Systems
Journal 34(2), 1995 (multipartition). Sizes follow from the problem's and the decomposition's, and
agree with those that the public sources of NPB 2 and 3 (MPI) compute. Set-up, verification and
timers are left out, of CG also the first and the last norm of an iteration (9 messages of 184 in a
chain on 16 ranks). An element is 8 bytes, a complex one 16, a key 4.
"""

from firstlight.goal.collectives import all_reduce_doubling, all_to_all
from firstlight.goal.grid import Grid, power_of_two, side_of, sides_of
from firstlight.goal.schedule import Schedule

ELEMENT, COMPLEX, KEY = 8, 16, 4
Sizes = dict[str, int]

BT_POINTS: Sizes = {"S": 12, "W": 24, "A": 64}
CG_ROWS: Sizes = {"S": 1400, "W": 7000, "A": 14_000}
CG_STEPS = 25
"""Steps of conjugate gradients in an iteration."""
FT_POINTS: Sizes = {"S": 64**3, "W": 128 * 128 * 32, "A": 256 * 256 * 128}
IS_KEYS: Sizes = {"S": 1 << 16, "W": 1 << 20, "A": 1 << 23}
IS_BUCKETS: Sizes = {"S": 1 << 9, "W": 1 << 10, "A": 1 << 10}
IS_TEST_KEYS = 5
"""Keys whose ranks are checked in each iteration: they are summed with the buckets."""
MG_POINTS: Sizes = {"S": 32, "W": 64, "A": 256}


def bt(schedule: Schedule, size: str, iterations: int, compute: int) -> None:
    """Multipartition on a square of q x q ranks, each with q cells along a diagonal of the cube.

    An iteration exchanges faces of cells, two points deep, with six neighbours: of all cells but one,
    which is at the boundary there. Then it sweeps each dimension forth and back over q cells: the
    block tridiagonal's 5 x 5 matrix and 5 values, then 5 values, for each point of a face; these
    buffers have room for a point more along each side, and are sent whole.
    """
    q = side_of("bt", schedule.ranks)
    face = (-(-BT_POINTS[size] // q)) ** 2
    buffer = (BT_POINTS[size] // q + 1) ** 2
    grid = Grid([q, q])
    # The third direction leads along both: cells of a rank lie on diagonals.
    ahead = [
        [grid.neighbour(rank, 0, 1) for rank in range(schedule.ranks)],
        [grid.neighbour(rank, 1, 1) for rank in range(schedule.ranks)],
        [grid.neighbour(grid.neighbour(rank, 0, -1), 1, -1) for rank in range(schedule.ranks)],
    ]
    for _ in range(iterations):
        copied = (q - 1) * face * 2 * 5 * ELEMENT
        there = [(rank, to[rank], copied) for to in ahead for rank in range(schedule.ranks)]
        schedule.exchange([*there, *((dst, src, n) for src, dst, n in there)])
        for to in ahead:
            schedule.compute(compute)
            for values, forth in [(5 * 5 + 5, True), (5, False)]:
                pairs = list(enumerate(to)) if forth else [(dst, src) for src, dst in enumerate(to)]
                for _ in range(q - 1):
                    schedule.exchange((src, dst, buffer * values * ELEMENT) for src, dst in pairs)


def cg(schedule: Schedule, size: str, iterations: int, compute: int) -> None:
    """A sparse matrix on a grid of rows and columns of ranks, as many columns as rows or twice as
    many.

    A step multiplies by the matrix, sums the pieces along each row of ranks by recursive doubling,
    exchanges the result with the transposed rank, and has two inner products.
    """
    power_of_two("cg", schedule.ranks)
    rows, columns = sides_of(schedule.ranks, 2)[::-1]
    grid = Grid([rows, columns])
    piece = -(-CG_ROWS[size] // columns) * ELEMENT
    for _ in range(iterations):
        for _ in range(CG_STEPS):
            schedule.compute(compute)
            _sum_rows(schedule, grid, piece)
            swap = [_transposed(place, rows, columns) for place in grid.places]
            schedule.exchange((rank, to, piece) for rank, to in enumerate(swap))
            for _ in range(2):
                _sum_rows(schedule, grid, ELEMENT)


def _sum_rows(schedule: Schedule, grid: Grid, size: int) -> None:
    """Recursive doubling within each row of ranks."""
    columns, distance = grid.sides[1], 1
    while distance < columns:
        schedule.exchange((rank, rank ^ distance, size) for rank in range(schedule.ranks))
        distance *= 2


def _transposed(place: tuple[int, ...], rows: int, columns: int) -> int:
    """The rank that has the transposed block: with twice as many columns, blocks of a row go two by two."""
    row, column = place
    half = columns // rows
    return (column // half) * columns + row * half + column % half


def ft(schedule: Schedule, size: str, iterations: int, compute: int) -> None:
    """A Fourier transform in three dimensions, cut into slabs: each iteration transposes all of it,
    and sums a checksum, here for all ranks and not for the first alone."""
    power_of_two("ft", schedule.ranks)
    for _ in range(iterations):
        schedule.compute(compute)
        all_to_all(schedule, FT_POINTS[size] * COMPLEX // schedule.ranks**2)
        all_reduce_doubling(schedule, COMPLEX)


def is_(schedule: Schedule, size: str, iterations: int, compute: int) -> None:
    """Integer sort: bucket sizes are summed, their counts and then the keys exchanged; keys are taken
    as spread evenly."""
    power_of_two("is", schedule.ranks)
    for _ in range(iterations):
        schedule.compute(compute)
        all_reduce_doubling(schedule, (IS_BUCKETS[size] + IS_TEST_KEYS) * KEY)
        all_to_all(schedule, KEY)
        all_to_all(schedule, IS_KEYS[size] * KEY // schedule.ranks**2)


def mg(schedule: Schedule, size: str, iterations: int, compute: int) -> None:
    """Multigrid on a cube of blocks: an exchange is of the faces of a level, dimension after dimension,
    where a face includes what came from the dimensions before.

    A V-cycle exchanges each coarser level on its way down, the coarsest once more after smoothing, and
    each other level twice on its way up, after its residual and after smoothing; then comes the
    residual of the whole.

    On coarse levels, where there are fewer points than ranks along a side, ranks have a point each:
    the benchmark would let some of them idle.
    """
    power_of_two("mg", schedule.ranks)
    sides = sides_of(schedule.ranks, 3)
    grid = Grid(sides)
    levels = [MG_POINTS[size] >> level for level in range(MG_POINTS[size].bit_length() - 1)]
    for _ in range(iterations):
        up = [level for level in levels[-2::-1] for _ in range(2)]
        for points in [*levels[1:], levels[-1], *up, levels[0]]:
            schedule.compute(compute)
            block = [max(1, points // side) for side in sides]
            for axis in range(3):
                across = [n + 2 * (other < axis) for other, n in enumerate(block) if other != axis]
                face = across[0] * across[1] * ELEMENT
                schedule.exchange([*grid.shifts(axis, 1, face), *grid.shifts(axis, -1, face)])
