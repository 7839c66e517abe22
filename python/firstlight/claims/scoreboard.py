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


def scores(outcomes: Sequence[Outcome]) -> list[Score]:
    """The lines of all claims, those of one paper together."""
    found = [Score(o.claim, {hosts: judge(o, hosts) for hosts in HOSTS}) for o in outcomes]
    papers = list(dict.fromkeys(score.claim.source.name for score in found))
    return sorted(found, key=lambda score: papers.index(score.claim.source.name))
