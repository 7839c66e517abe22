"""Schedules of message-passing applications in GOAL's text form, generated."""

from firstlight import _core
from firstlight.errors import SpecError

BENCHMARKS, CLASSES, PATTERNS = map(tuple, _core.goal_names())
NAMES = (*BENCHMARKS, *PATTERNS)


def generate(
    name: str,
    ranks: int,
    *,
    problem: str | None = None,
    size: int | None = None,
    iterations: int = 1,
    compute_ns: int = 0,
) -> str:
    """The schedule of an application, as a file has it.

    ``name`` is one of ``NAMES``. Benchmarks take a ``problem`` class (default "S"), patterns the ``size`` of
    their messages in bytes (default 64 KiB). ``compute_ns``: how long every rank computes between exchanges.

    Raises SpecError when there is no such application, or it does not run on ``ranks`` ranks.
    """
    if min(ranks, iterations) < 1 or compute_ns < 0 or (size is not None and size < 1):
        raise SpecError(
            "ranks, iterations and size are at least 1, and a computation takes no less than 0 ns"
        )
    try:
        return _core.goal(f"{name}.{problem}" if problem else name, ranks, size, iterations, compute_ns)
    except _core.SpecError as e:
        raise SpecError(str(e)) from None
    except OverflowError:
        raise SpecError("ranks and iterations are below 2^32, sizes and computations below 2^64") from None
