"""Collective operations as exchanges (Thakur, Rabenseifner and Gropp, "Optimization of collective
communication operations in MPICH", IJHPCA 19(1), 2005)."""

from firstlight.goal.schedule import Schedule


def all_to_all(schedule: Schedule, size: int) -> None:
    """Each rank sends ``size`` bytes to each other, all at once, the next rank first."""
    ranks = schedule.ranks
    schedule.exchange((src, (src + step) % ranks, size) for step in range(1, ranks) for src in range(ranks))


def all_reduce_doubling(schedule: Schedule, size: int) -> None:
    """Recursive doubling, for small vectors: in round k ranks at distance 2^k exchange all ``size`` bytes.

    The number of ranks is a power of two.
    """
    distance = 1
    while distance < schedule.ranks:
        schedule.exchange((rank, rank ^ distance, size) for rank in range(schedule.ranks))
        distance *= 2


def all_reduce_ring(schedule: Schedule, size: int) -> None:
    """A ring, for large vectors: parts of ``size`` / ranks go round twice, reduced and then gathered."""
    ranks = schedule.ranks
    for _ in range(2 * (ranks - 1)):
        schedule.exchange((rank, (rank + 1) % ranks, -(-size // ranks)) for rank in range(ranks))
