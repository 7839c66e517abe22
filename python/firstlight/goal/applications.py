"""Applications by name."""

from collections.abc import Callable

from firstlight.errors import SpecError
from firstlight.goal import nas, patterns
from firstlight.goal.schedule import Schedule

CLASSES = ("S", "W", "A")
BENCHMARKS: dict[str, Callable[[Schedule, str, int, int], None]] = {
    "bt": nas.bt,
    "cg": nas.cg,
    "ft": nas.ft,
    "is": nas.is_,
    "mg": nas.mg,
}
PATTERNS: dict[str, Callable[[Schedule, int, int, int], None]] = {
    "halo": patterns.halo,
    "all-to-all": patterns.exchange_all,
    "all-reduce": patterns.reduce_all,
    "wavefront": patterns.wavefront,
}
NAMES = (*BENCHMARKS, *PATTERNS)
SIZE = 65_536
"""Bytes of a pattern's messages, unless told otherwise."""


def generate(
    name: str,
    ranks: int,
    *,
    problem: str | None = None,
    size: int | None = None,
    iterations: int = 1,
    compute_ns: int = 0,
) -> str:
    """The schedule of an application, as a file in GOAL's text form has it.

    ``name`` is one of ``NAMES``. Benchmarks take a ``problem`` class (default "S"), patterns the
    ``size`` of their messages in bytes (default 64 KiB). ``compute_ns``: a computation between
    exchanges, on every rank.

    Raises SpecError when there is no such application, or it does not run on so many ranks.
    """
    if min(ranks, iterations) < 1 or compute_ns < 0 or (size is not None and size < 1):
        raise SpecError(
            "ranks, iterations and size are at least 1, and a computation takes no less than 0 ns"
        )
    schedule = Schedule(ranks)
    if name in BENCHMARKS:
        if size is not None:
            raise SpecError(f"--size: {name} has its messages' sizes from its class: write --class instead")
        if problem not in (None, *CLASSES):
            raise SpecError(f"--class: there is no class {problem!r}: write {', '.join(CLASSES)}")
        BENCHMARKS[name](schedule, problem or "S", iterations, compute_ns)
    elif name in PATTERNS:
        if problem is not None:
            raise SpecError(f"--class: {name} has no classes: write --size instead")
        if ranks < 2:
            raise SpecError(f"--ranks: {name} on one rank sends nothing: write 2 or more")
        PATTERNS[name](schedule, size or SIZE, iterations, compute_ns)
    else:
        raise SpecError(f"there is no application {name!r}: write one of {', '.join(NAMES)}")
    return schedule.text()
