"""Which figures a claim has."""

from collections.abc import Callable

from firstlight.claims import Kind
from firstlight.figures import points, sequence, sweeps
from firstlight.figures.style import Figure
from firstlight.verdict import Outcome

PAINTERS: dict[Kind, tuple[Callable[[Outcome], Figure], ...]] = {
    "points": (points.utilization, sequence.lead_up, points.tails),
    "sequence": (sequence.three_weeks,),
    "fct": (sweeps.completion_times,),
    "gain": (sweeps.gain,),
    "grid": (sweeps.factors,),
}


def figures(outcome: Outcome) -> list[Figure]:
    """All figures of one claim."""
    return [paint(outcome) for paint in PAINTERS[outcome.claim.kind]]
