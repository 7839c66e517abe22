"""Verdicts as text: for the report, and for the README of each claim, which is the record that tests compare
with."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from firstlight.claims.claim import Claim
from firstlight.claims.scoreboard import Score
from firstlight.claims.statement import StatedCheck
from firstlight.claims.verdict import Finding, Judged, Judgement, asked
from firstlight.pages.folding import folded
from firstlight.pages.lines import Line
from firstlight.runs.run import HOSTS, Hosts

COLUMNS = ("the paper, and what is asked for", "simulated hosts", "Linux hosts")
SHOWN = 4
"""A check with more findings than this is summed up."""
HEADING = re.compile(r"^On (simulated|Linux) hosts: \*\*(.+?)\*\*(.*)$", re.MULTILINE)
STATEMENT = re.compile(r"^- \*\*(.+?)\*\*", re.MULTILINE)
NAMES: dict[Hosts, str] = {"simulated": "simulated", "linux": "Linux"}


def lines(score: Score) -> list[Line]:
    """For each statement a line with its verdicts, then a line for each check with its findings."""
    found: list[Line] = []
    for i, statement in enumerate(score.claim.statements):
        judged = [j.statements[i] if j.statements else None for j in score.judgements.values()]
        found.append((f'"{statement.quote}"', *(_verdict(j) for j in judged)))
        for check in statement.checks:
            found.append((asked(score.claim, check), *(_found(j, check) for j in judged)))
        if cause := next(filter(None, map(_cause, judged)), ""):
            found.append((f"Cause: {cause}", *("" for _ in judged)))
    return found


def _verdict(judged: Judged | None) -> str:
    if judged is None:
        return "not comparable"
    return f"{judged.verdict}: {judged.why}" if judged.why else judged.verdict


def _cause(judged: Judged | None) -> str:
    """Why a statement does not hold, where its table says so."""
    return judged.statement.cause if judged and judged.verdict in ("partly", "contradicted") else ""


def _found(judged: Judged | None, check: StatedCheck) -> str:
    return summed([f for f in judged.findings if f.check is check]) if judged else ""


def summed(found: Sequence[Finding]) -> str:
    """The findings of a check: each place if there are few, else how many passed and the first that did
    not."""
    if len(found) <= SHOWN:
        return "; ".join(_place(f) + ("" if f.passed else " (no)") for f in found)
    failed = [f for f in found if not f.passed]
    first = f"; not {_place(failed[0])}" if failed else ""
    return f"{len(found) - len(failed)} of {len(found)}{first}"


def _place(finding: Finding) -> str:
    return f"{finding.place}: {finding.measured}" if finding.place else finding.measured


def record(judgement: Judgement, how: str) -> str:
    """The verdict of a claim on one kind of hosts as Markdown, and ``how`` it was found; then each statement
    with its checks."""
    more = f": {judgement.why}" if judgement.why else f", {how}" if judgement.counts else ""
    counts = f" ({judgement.counts})" if judgement.counts else ""
    head = f"On {NAMES[judgement.hosts]} hosts: **{judgement.verdict}**{counts}{more}"
    if judgement.verdict == "not run" or judgement.why:
        return "\n".join([*folded(head + "."), ""])
    statements = [line for s in judgement.statements for line in _recorded(judgement, s)]
    return "\n".join([*folded(head + "."), "", *statements, ""])


def _recorded(judgement: Judgement, judged: Judged) -> Iterator[str]:
    why = f" ({judged.why})" if judged.why else ""
    yield from folded(f'- **{judged.verdict}**{why}: "{judged.statement.quote}"', "  ")
    for check in () if judged.why else judged.statement.checks:
        found = _found(judged, check) or "not on these hosts"
        yield from folded(f"  - {asked(judgement.claim, check)}. Found: {found}", "    ")
    if cause := _cause(judged):
        yield from folded(f"  - Cause: {cause}", "    ")


def block(hosts: Hosts) -> re.Pattern[str]:
    """The place of the record on ``hosts`` in a README."""
    return re.compile(rf"(<!-- verdicts {hosts} -->\n)(.*?)(<!-- end -->)", re.DOTALL)


def recorded(readme: str, hosts: Hosts) -> tuple[str, list[str]]:
    """The verdict on a claim and those on its statements, as a README has them."""
    found = block(hosts).search(readme)
    heading = HEADING.search(found[2]) if found else None
    assert found and heading, f"no record of verdicts on {hosts} hosts"
    count = re.match(r" \(\d+ of \d+\)", heading[3])
    return heading[2] + (count[0] if count else ""), STATEMENT.findall(found[2])


def in_short(judgement: Judgement) -> tuple[str, list[str]]:
    """The verdict on a claim and those on its statements, as a judgement has them."""
    counts = f" ({judgement.counts})" if judgement.counts else ""
    return judgement.verdict + counts, [s.verdict for s in judgement.statements] if not judgement.why else []


def scoreboard(claims: Iterable[Claim]) -> str:
    """The scoreboard of all claims as Markdown, by paper, from the records in their READMEs."""
    lines: list[str] = []
    for source, its in groupby(sorted(claims, key=_order), key=lambda claim: claim.source):
        lines += ["", f"### {source.name}: {source.title}", "", "| claim | figure | simulated | Linux |"]
        lines += ["|---|---|---|---|", *map(_scored, its)]
    return "\n".join([*lines[1:], ""])


def _order(claim: Claim) -> tuple[str, str]:
    return claim.source.name, claim.name


def _scored(claim: Claim) -> str:
    readme = (claim.folder / "README.md").read_text(encoding="utf-8")
    verdicts = " | ".join(_with_cause(claim, recorded(readme, hosts)[0]) for hosts in HOSTS)
    return f"| [{claim.folder.name}]({claim.name}) | {claim.display} | {verdicts} |"


def _with_cause(claim: Claim, verdict: str) -> str:
    """A verdict, and whether the page shows the cause where a claim is contradicted."""
    named = verdict.startswith("contradicted") and any(s.cause for s in claim.statements)
    return f"{verdict}, cause shown" if named else verdict
