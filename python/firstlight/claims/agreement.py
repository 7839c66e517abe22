"""Agreement of a reproduction with its references: mean differences for each figure."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal

from firstlight.claims.claim import Platform
from firstlight.claims.outcome import Outcome
from firstlight.claims.rows import Row
from firstlight.runs.result import UTILIZATION
from firstlight.runs.run import HOSTS, Hosts

TAILS = ("p99_all_us", "p99_circuit_us", "p99_packet_us")
Reference = Literal["the text", "paper", "Linux"]


@dataclass(frozen=True)
class MeanDifference:
    """The mean absolute difference of some rows."""

    name: str
    difference: float
    unit: str

    def __str__(self) -> str:
        return f"{self.name} {self.difference:.1f} {self.unit}"


@dataclass(frozen=True)
class Agreement:
    """Agreement of one figure's rows on one platform with one reference."""

    figure: str
    platform: Platform
    against: Reference
    parts: tuple[MeanDifference, ...]
    numbers: int = 0
    """How many numbers the text states, where it is the reference."""

    def __str__(self) -> str:
        hosts = f"{self.figure}, {self.platform.kind} hosts"
        if self.against == "the text":
            apart = [f"mean absolute difference {part.difference:.0f} %" for part in self.parts]
            return f"{hosts}, against the text: {self.numbers} numbers, {(apart or ['none measured'])[0]}"
        which = f"{hosts}, {self.platform.scale}, against {self.against}"
        return f"{which}: mean absolute difference {', '.join(map(str, self.parts))}"


def agreements(outcome: Outcome, rows: Sequence[Row]) -> list[Agreement]:
    """Agreement with every number that the paper states. Of a claim at several time scales: with the paper at
    the largest, which is that of its testbed, and of simulated with Linux hosts wherever these were
    measured."""
    claim = outcome.claim
    if not claim.dilated:
        return [found for hosts in outcome.hosts for found in _with_text(claim.display, hosts, rows)]
    testbed, found = max(claim.time_scales), []
    references: tuple[Reference, ...] = ("paper", "Linux")
    for hosts, against, scale in product(HOSTS[::-1], references, claim.time_scales):
        if against == "paper" and scale != testbed:
            continue
        chosen = [r for r in rows if r.platform == (hosts, scale) and r.ours is not None]
        if parts := _parts(chosen, against):
            found.append(Agreement(claim.display, Platform(hosts, scale), against, parts))
    return found


def _with_text(figure: str, hosts: Hosts, rows: Sequence[Row]) -> list[Agreement]:
    stated = [r for r in rows if r.paper and r.hosts == hosts]
    apart = [abs(r.percent) for r in stated if r.percent is not None]
    parts = (MeanDifference("", sum(apart) / len(apart), "%"),) if apart else ()
    platform = Platform(hosts, stated[0].time_scale) if stated else Platform(hosts)
    return [Agreement(figure, platform, "the text", parts, len(stated))] if stated else []


def _parts(rows: Sequence[Row], against: Reference) -> tuple[MeanDifference, ...]:
    """Utilization in points and p99 in percent, as far as the reference has them."""
    points: list[float] = []
    percent: list[float] = []
    for row in rows:
        reference = row.paper if against == "paper" else row.linux
        if reference and row.ours is not None:
            if row.metric == UTILIZATION:
                points.append(abs(row.ours - reference))
            elif row.metric in TAILS:
                percent.append(100 * abs(row.ours - reference) / reference)
    kinds = (("utilization", points, "points"), ("p99", percent, "%"))
    return tuple(MeanDifference(name, sum(found) / len(found), unit) for name, found, unit in kinds if found)
