"""Which figures a claim has."""

from firstlight.claims.verdict import Outcome
from firstlight.figures import measured, points, sequence, sweeps, variants
from firstlight.figures.style import Figure


def figures(outcome: Outcome) -> list[Figure]:
    """All figures of one claim."""
    match outcome.claim.kind:
        case "points":
            return [points.utilization(outcome), *_lead_ups(outcome), points.tails(outcome)]
        case "variants":
            return [variants.utilization(outcome), *_lead_ups(outcome)]
        case "sequence":
            return [sequence.three_weeks(outcome)]
        case "fct":
            return [sweeps.completion_times(outcome)]
        case "gain":
            return [sweeps.gain(outcome)]
        case "grid":
            return [sweeps.factors(outcome)]
        case "validation":
            return []
        case "measured":
            return measured.figures(outcome)


def _lead_ups(outcome: Outcome) -> list[Figure]:
    return [sequence.lead_up(outcome, hosts) for hosts in outcome.hosts]
