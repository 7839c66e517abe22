"""The scoreboard: one line for each claim, by paper, with its verdict on each kind of hosts."""

from collections.abc import Sequence
from dataclasses import dataclass

from firstlight.claims.claim import Claim
from firstlight.claims.outcome import Outcome
from firstlight.claims.verdict import Judgement, judge
from firstlight.runs.run import HOSTS, Hosts

COLUMNS = ("claim", "what", "simulated hosts", "Linux hosts")


@dataclass(frozen=True)
class Score:
    """A claim's line."""

    claim: Claim
    judgements: dict[Hosts, Judgement]

    @property
    def cells(self) -> tuple[str, ...]:
        """The line's texts, as :data:`COLUMNS` names them."""
        return self.claim.display, self.claim.title, *(str(j) for j in self.judgements.values())


def score(outcome: Outcome) -> Score:
    """The line of a claim."""
    return Score(outcome.claim, {hosts: judge(outcome, hosts) for hosts in HOSTS})


def by_paper(scores: Sequence[Score]) -> list[Score]:
    """The lines, those of one paper together."""
    papers = list(dict.fromkeys(score.claim.source.name for score in scores))
    return sorted(scores, key=lambda score: papers.index(score.claim.source.name))
