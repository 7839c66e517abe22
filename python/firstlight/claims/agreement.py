"""How near a reproduction comes: mean differences per figure, and the paper's headline ratios."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from firstlight.claims.claim import HOSTS, At, Hosts
from firstlight.claims.verdict import TAILS, UTILIZATION, Outcome, Row


@dataclass(frozen=True)
class Aim:
    """The mean absolute differences that are aimed at."""

    utilization: float
    """In points."""
    tail: float
    """Of p99, in percent."""


AIMS: dict[Hosts, Aim] = {"simulated": Aim(5.0, 8.0), "linux": Aim(3.0, 5.0)}


@dataclass(frozen=True)
class Agreement:
    """How near one figure's rows are to one reference at one time scale."""

    figure: str
    hosts: Hosts
    against: str
    time_scale: int
    utilization: float | None
    """Mean absolute difference, points."""
    tail: float | None
    """Mean absolute difference of p99, percent."""
    fct: float | None
    """Mean absolute difference of completion times, percent."""
    aimed: bool
    """Whether the project set itself an aim for this figure."""
    numbers: int = 0
    """Of a measured claim: how many of its numbers the paper has too,"""
    others: float | None = None
    """and their mean absolute difference, percent."""

    @property
    def aim(self) -> Aim:
        """What is aimed at on these hosts."""
        return AIMS[self.hosts]

    @property
    def met(self) -> bool | None:
        """Whether the aim is met; ``None`` where there is none."""
        checks = [(self.utilization, self.aim.utilization), (self.tail, self.aim.tail)]
        known = [value <= aim for value, aim in checks if value is not None]
        return all(known) if known and self.aimed else None


def agreements(outcome: Outcome, rows: Sequence[Row]) -> list[Agreement]:
    """Agreement with the paper at scale 20 (its testbed's dilation), and of simulated hosts with real Linux
    wherever it was measured."""
    claim = outcome.claim
    if claim.kind == "measured":
        return _of_numbers(claim.display, rows)
    found = []
    for hosts, against, scale in product(("linux", "simulated"), ("paper", "Linux"), (20, 1)):
        if against == "paper" and scale == 1 and claim.kind != "fct":
            continue  # the published testbed numbers hold for dilated kernels only
        chosen = [r for r in rows if r.time_scale == scale and r.hosts == hosts]
        pairs = [(r, r.paper if against == "paper" else r.linux) for r in chosen]
        agreement = Agreement(
            claim.display,
            "linux" if hosts == "linux" else "simulated",
            against,
            scale,
            _mean(
                [
                    abs(r.ours - ref)
                    for r, ref in pairs
                    if r.metric == UTILIZATION and ref and r.ours is not None
                ]
            ),
            _mean(
                [
                    _percent(r.ours, ref)
                    for r, ref in pairs
                    if r.metric in TAILS and ref and r.ours is not None
                ]
            ),
            _mean(
                [
                    _percent(r.ours, ref)
                    for r, ref in pairs
                    if r.metric == "fct_s" and ref and r.ours is not None
                ]
            ),
            bool(claim.options.get("aim")) and (against, scale) != ("Linux", 20),
        )
        if (agreement.utilization, agreement.tail, agreement.fct) != (None, None, None):
            found.append(agreement)
    return found


def _of_numbers(figure: str, rows: Sequence[Row]) -> list[Agreement]:
    """Agreement of a measured claim with every number that its paper states, on each kind of hosts."""
    found = []
    for hosts in HOSTS:
        stated = [r for r in rows if r.paper and r.hosts == hosts]
        apart = [_percent(r.ours, r.paper) for r in stated if r.ours is not None and r.paper]
        if stated:
            none = Agreement(figure, hosts, "the text", 1, None, None, None, aimed=False)
            found.append(replace(none, numbers=len(stated), others=_mean(apart)))
    return found


def _percent(ours: float, reference: float) -> float:
    return 100 * abs(ours - reference) / reference


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


HEADLINE_AT: dict[str, At] = {"static": (16,), "dynamic": (1800,), "retcp": (150,)}
"""The points that the paper's abstract compares."""


def headline(outcomes: Sequence[Outcome]) -> list[Row]:
    """The paper's headline ratios; the tail both like for like (p99 by p99) and as the paper computed it (p99
    by the median)."""
    roles = {o.claim.options.get("headline"): o for o in outcomes}
    if not HEADLINE_AT.keys() <= roles.keys():
        return []
    kinds = set.intersection(*(set(roles[r].hosts) for r in HEADLINE_AT))
    return [
        row
        for scale in (20, 1)
        for hosts in HOSTS
        if hosts in kinds and all((hosts, at) in _points(roles[r]) for r, at in HEADLINE_AT.items())
        for row in _headline_rows(roles, scale, hosts)
    ]


def _points(outcome: Outcome) -> set[tuple[Hosts, At]]:
    return {(hosts, at) for hosts, _, at in outcome.results}


def _headline_rows(roles: Mapping[Any, Outcome], scale: int, hosts: Hosts) -> Iterator[Row]:
    def numbers(role: str) -> tuple[Mapping[str, float], dict[str, float | None]]:
        outcome, at = roles[role], HEADLINE_AT[role]
        curve = next(c for c in outcome.claim.curves if c.time_scale == scale)
        names = (UTILIZATION, "p99_all_us", "p50_all_us")
        return outcome.claim.expected("paper", at, scale), {
            n: outcome.metric(curve, at, n, hosts) for n in names
        }

    paper_base, our_base = numbers("static")
    for role, name in (("dynamic", "dynamic 1800 us"), ("retcp", "reTCP 150 us")):
        paper, ours = numbers(role)
        for metric, above, below in (
            ("utilization ratio", UTILIZATION, UTILIZATION),
            ("p99 by static p99 (like for like)", "p99_all_us", "p99_all_us"),
            ("p99 by static median (as the paper)", "p99_all_us", "p50_all_us"),
        ):
            yield Row(
                "headline",
                f"static 16 -> {name}",
                metric,
                "x",
                _ratio(paper.get(above), paper_base.get(below)),
                _ratio(ours[above], our_base[below]),
                scale,
                None,
                "headline",
                hosts,
            )


def _ratio(a: float | None, b: float | None) -> float | None:
    return a / b if a is not None and b else None
