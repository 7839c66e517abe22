"""Verdicts: whether a paper's statements are true here, for simulated and for Linux hosts."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from firstlight.claims.claim import Claim, Platform
from firstlight.claims.outcome import Measured, Outcome
from firstlight.claims.quantity import compared, ordered, quantities, stems
from firstlight.claims.statement import StatedCheck, Statement
from firstlight.numbers import number
from firstlight.runs.run import HOSTS, Hosts

Verdict = Literal["holds", "partly", "contradicted", "not comparable", "not run"]
"""Of a statement: all its findings pass, some do, none does; or it says nothing about these runs. Of a claim:
the same over its statements."""


@dataclass(frozen=True)
class Finding:
    """The finding of a check at one place."""

    check: StatedCheck
    place: str
    measured: str
    passed: bool


@dataclass(frozen=True)
class Judged:
    """A statement on one kind of hosts."""

    statement: Statement
    findings: tuple[Finding, ...]
    why: str = ""
    """Why it is not comparable."""

    @property
    def verdict(self) -> Verdict:
        """The verdict on all findings together."""
        if self.why:
            return "not comparable"
        return together("holds" if f.passed else "contradicted" for f in self.findings)


@dataclass(frozen=True)
class Judgement:
    """A claim on one kind of hosts."""

    claim: Claim
    hosts: Hosts
    statements: tuple[Judged, ...]
    why: str = ""
    """Why the claim is not comparable."""

    @property
    def verdict(self) -> Verdict:
        """The verdict on all statements together."""
        return "not comparable" if self.why else together(s.verdict for s in self.statements)

    @property
    def counts(self) -> str:
        """How many of the comparable statements hold: ``2 of 3``."""
        verdicts = [s.verdict for s in self.statements if s.verdict not in ("not comparable", "not run")]
        return f"{verdicts.count('holds')} of {len(verdicts)}" if verdicts else ""

    def __str__(self) -> str:
        """The verdict, and of one with several statements how many hold."""
        return f"{self.verdict} ({self.counts})" if len(self.statements) > 1 and self.counts else self.verdict


def together(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict on several verdicts. Those that were not run or are not comparable do not count."""
    every = set(verdicts)
    known = every - {"not comparable", "not run"}
    if not known:
        return "not run" if not every or "not run" in every else "not comparable"
    return known.pop() if len(known) == 1 else "partly"


def judge(outcome: Outcome, hosts: Hosts) -> Judgement:
    """Judge a claim on ``hosts``, at the time scale of the paper's testbed."""
    claim = outcome.claim
    if why := claim.not_comparable:
        return Judgement(claim, hosts, (), why)
    if not any(hosts in c.hosts for c in claim.curves):
        return Judgement(claim, hosts, (), f"only for {next(h for h in HOSTS if h != hosts)} hosts")
    view = Measured(outcome, Platform(hosts, max(claim.time_scales)))
    return Judgement(claim, hosts, tuple(_judged(view, s) for s in claim.statements))


def _judged(view: Measured, statement: Statement) -> Judged:
    if why := statement.not_comparable.get(view.platform.hosts):
        return Judged(statement, (), why)
    return Judged(statement, tuple(f for check in statement.checks for f in findings(view, check)))


def findings(view: Measured, check: StatedCheck) -> Iterator[Finding]:
    """The findings of a check, one for each place that was run."""
    if check.order:
        for stem in stems(view, check):
            values = ordered(view, check, stem)
            passed = all(a is not None and b is not None and a < b for a, b in pairwise(values))
            yield Finding(check, stem.name(view), ", ".join(map(number, values)), passed)
    else:
        for quantity in quantities(view, check):
            value = quantity.estimate.value
            measured = number(value)
            if check.is_of_table:
                measured += " off" if check.within_pct is None else " % off"
            yield Finding(check, quantity.place, measured, value is not None and _passes(check, value))


def _passes(check: StatedCheck, value: float) -> bool:
    """Whether a number is within the check's bounds."""
    if check.is_of_table:
        return value <= (check.within if check.within is not None else check.within_pct or 0.0)
    if check.paper is None:
        least, most = check.least, check.most
    else:
        percent = abs(check.paper) * (check.within_pct or 0.0) / 100
        apart = percent if check.within is None else check.within
        least, most = check.paper - apart, check.paper + apart
    return (least is None or value >= least) and (most is None or value <= most)


def asked(claim: Claim, check: StatedCheck) -> str:
    """The requirement of a check, in words."""
    measure = next((m for m in claim.measures if m.metric == check.metric), None)
    label, unit = (measure.label, measure.unit) if measure else (check.metric, "")
    if check.order:
        return f"{label}: {' < '.join(compared(claim, check, check.order))}"
    if check.ratio:
        above, below = compared(claim, check, check.ratio)
        under = f" {check.under}" if check.under else ""
        label, unit = f"{label}, {above} / {below}{under}", "x"
    if check.knee is not None:
        axis = next(a for a in claim.axes if a.name == check.along)
        label, unit = f"{axis.label} from which on {label} is {check.knee:g} {unit}", axis.unit
    where = [*check.curves, *(f"{name} {_several(v)}" for name, v in check.allowed().items())]
    over = [] if check.over == "each" else [check.over]
    return f"{', '.join([label, *where, *over])}: {_bounds(check, unit)}"


def _bounds(check: StatedCheck, unit: str) -> str:
    unit = f" {unit}" if unit else ""
    points = " points" if unit == " %" else unit
    near = f"{check.within_pct or 0:g} %" if check.within is None else f"{check.within:g}{points}"
    if check.is_of_table:
        return f"the figure's, within {near}"
    if check.paper is not None:
        return f"{check.paper:g}{unit}, within {near}"
    bounds = [f"at least {check.least:g}"] if check.least is not None else []
    bounds += [f"at most {check.most:g}"] if check.most is not None else []
    return " and ".join(bounds) + unit


def _text(value: object) -> str:
    return value if isinstance(value, str) else f"{value:g}"


def _several(values: Iterable[object]) -> str:
    return ", ".join(map(_text, values))
