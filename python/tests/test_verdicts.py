"""Verdicts: each kind of check passes, fails and is refused, against numbers made by hand."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import firstlight as fl
import pytest
from firstlight.claims.claim import Platform
from firstlight.claims.outcome import Outcome
from firstlight.claims.read import find, read
from firstlight.claims.rows import rows
from firstlight.claims.scoreboard import by_paper, score
from firstlight.claims.verdict import Judgement, Verdict, asked, judge, together
from firstlight.pages import verdicts
from firstlight.runs.result import Result

EXPERIMENT = """\
name = "small"
duration = "20ms"

[fabric]
kind = "dumbbell"
left = 1
right = 2

[hosts]
rate = "10Gbps"
delay = "4us"
"""
CLAIM = """\
figure = "7"
title = "Small"
section = "1"
claim = "A is better than B."

[[axes]]
name = "size"
label = "size"
unit = "packets"
keys = ["fabric.right"]
values = [2, 3, 4]

[[curves]]
name = "A"

[[curves]]
name = "B"
set = { "tcp.cc" = "newreno" }

[quick]

[full]

[[measures]]
metric = "delay"
figure = "7a"
label = "mean delay"
unit = "us"

[[measures]]
metric = "dropped_packets"
figure = "7b"
label = "packets dropped"
unit = "packets"

"""
EXPECTED = "# By hand.\nsize,curve,delay\n2,A,10\n3,A,22\n"
DELAY = {"A": {2: 10.0, 3: 20.0, 4: 40.0}, "B": {2: 30.0, 3: 50.0, 4: 40.0}}
"""Mean delay of each curve at each size."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a claim."""
    place = tmp_path / "experiments" / "someone" / "fig07"
    place.mkdir(parents=True)
    (place / "experiment.toml").write_text(EXPERIMENT)
    (place / "expected.csv").write_text(EXPECTED)
    return place


def outcome_of(folder: Path, statements: str) -> Outcome:
    """The claim with these statements, and the delays above on simulated hosts; B drops at size 4."""
    (folder / "claim.toml").write_text(CLAIM + statements)
    outcome = Outcome(read(folder), "quick")
    for platform, curve, at in outcome.claim.runs("quick"):
        size = int(at[0])
        drops = 5.0 if (curve, size) == ("B", 4) else 0.0
        summary = {"metric": ["delay", "dropped_packets"], "value": [DELAY[curve][size], drops]}
        result = Result({"name": "x", "digest": "0", "spec": {}}, {"summary": summary})
        outcome.results[platform, curve, at] = result
    return outcome


def judged(folder: Path, *checks: str) -> Judgement:
    checks = tuple(c if c.startswith("metric") else f'metric = "delay", {c}' for c in checks)
    text = '[[statements]]\nquote = "A is better."\nchecks = [\n' + "".join(f"  {{ {c} }},\n" for c in checks)
    return judge(outcome_of(folder, text + "]\n"), "simulated")


KINDS: list[tuple[str, str, str, str]] = [
    # kind, a check that passes, its findings, the same check broken
    ("order of curves", 'at = { size = 2 }, order = ["A", "B"]', "10.0, 30.0",
     'at = { size = 2 }, order = ["B", "A"]'),
    ("order along an axis", 'curves = ["A"], along = "size", order = [2, 3, 4]', "10.0, 20.0, 40.0",
     'curves = ["A"], along = "size", order = [2, 4, 3]'),
    ("bound", 'curves = ["A"], at = { size = [2, 3] }, most = 20', "10.0 20.0",
     'curves = ["A"], at = { size = [2, 3] }, most = 9'),
    ("no drops", 'metric = "dropped_packets", curves = ["A"], over = "largest", most = 0', "0.00",
     'metric = "dropped_packets", curves = ["B"], over = "largest", most = 0'),
    ("ratio", 'at = { size = 2 }, ratio = ["B", "A"], least = 2.5, most = 3.5', "3.00",
     'at = { size = 2 }, ratio = ["A", "B"], least = 2.5, most = 3.5'),
    ("ratio along an axis", 'curves = ["A"], along = "size", ratio = [4, 2], paper = 4, within = 0',
     "4.00", 'curves = ["B"], along = "size", ratio = [4, 2], paper = 4, within = 1'),
    ("near a number", 'curves = ["A"], at = { size = 3 }, paper = 21, within_pct = 5', "20.0",
     'curves = ["A"], at = { size = 3 }, paper = 21, within_pct = 4'),
    ("near a figure", 'within = 2', "0.00 off 2.00 off", 'over = "largest", within = 1.9'),
    ("mean", 'curves = ["B"], over = "mean", least = 40, most = 40', "40.0",
     'curves = ["B"], over = "mean", least = 41'),
    ("knee", 'curves = ["A"], along = "size", knee = 20, least = 3, most = 3', "3.00",
     'curves = ["A"], along = "size", knee = 21, least = 3, most = 3'),
    ("knee from which on it stays", 'curves = ["B"], along = "size", knee = 40, least = 3', "3.00",
     'curves = ["B"], along = "size", knee = 50, least = 3'),
]  # fmt: skip


@pytest.mark.parametrize(("passing", "found", "broken"), [k[1:] for k in KINDS], ids=[k[0] for k in KINDS])
def test_each_kind_of_check_passes_and_fails(folder: Path, passing: str, found: str, broken: str) -> None:
    good, bad = judged(folder, passing), judged(folder, broken)
    assert (good.verdict, bad.verdict) == ("holds", "contradicted")
    assert " ".join(f.measured for f in good.statements[0].findings) == found


def test_a_statement_that_holds_at_some_points_is_partly_true(folder: Path) -> None:
    judgement = judged(folder, 'order = ["A", "B"]')
    assert judgement.verdict == "partly"
    [statement] = judgement.statements
    assert [f.passed for f in statement.findings] == [True, True, False], "40 us are not less than 40 us"
    assert judged(folder, 'metric = "none", curves = ["A"], most = 1').verdict == "contradicted"


def test_a_claim_is_judged_by_its_statements(folder: Path) -> None:
    text = (
        '[[statements]]\nquote = "a"\nchecks = [{ metric = "delay", most = 50 }]\n'
        '[[statements]]\nquote = "b"\nchecks = [{ metric = "delay", most = 1 }]\n'
        '[[statements]]\nquote = "c"\nchecks = [{ metric = "delay", most = 1 }]\n'
        'not_comparable = { simulated = "no clock is so fine" }\n'
    )
    outcome = outcome_of(folder, text)
    judgement = judge(outcome, "simulated")
    assert [s.verdict for s in judgement.statements] == ["holds", "contradicted", "not comparable"]
    assert str(judgement) == "partly (1 of 2)"
    assert str(judge(outcome, "linux")) == "not run"
    [line] = by_paper([score(outcome)])
    assert line.cells == ("someone Fig. 7", "Small", "partly (1 of 2)", "not run")


def test_verdicts_together() -> None:
    cases: list[tuple[list[Verdict], Verdict]] = [
        (["holds", "holds"], "holds"),
        (["contradicted", "contradicted"], "contradicted"),
        (["holds", "contradicted"], "partly"),
        (["partly"], "partly"),
        (["holds", "not comparable", "not run"], "holds"),
        (["not comparable"], "not comparable"),
        (["not comparable", "not run"], "not run"),
        ([], "not run"),
    ]
    for given, wanted in cases:
        assert together(given) == wanted, given


def test_a_claim_without_statements_says_why(folder: Path) -> None:
    with pytest.raises(fl.PlanError, match="or not_comparable with the reason"):
        outcome_of(folder, "")
    text = CLAIM.replace("[[axes]]", 'not_comparable = "Ours alone."\n\n[[axes]]', 1)
    (folder / "claim.toml").write_text(text)
    judgement = judge(Outcome(read(folder), "quick"), "simulated")
    assert (judgement.verdict, judgement.why, judgement.counts) == ("not comparable", "Ours alone.", "")


def test_numbers_of_the_text_are_rows_beside_ours(folder: Path) -> None:
    text = (
        '[[statements]]\nquote = "a"\nchecks = [\n'
        '  { metric = "delay", curves = ["B"], at = { size = 4 }, paper = 44, within_pct = 10 },\n'
        '  { metric = "delay", at = { size = 2 }, ratio = ["B", "A"], paper = 3.3, within_pct = 10 },\n'
        '  { metric = "delay", curves = ["A"], over = "largest", paper = 50, within_pct = 10 },\n]\n'
    )
    found = {
        (r.point, r.unit): (r.paper, r.ours) for r in rows(outcome_of(folder, text)) if r.metric == "delay"
    }
    assert found["4 packets, B", "us"] == (44, 40.0)
    assert found["2 packets, B / A", "x"] == (3.3, 3.0)
    assert found["largest of 3 points, A", "us"] == (50, 40.0)
    assert found["2 packets, A", "us"] == (10, 10.0), "of expected.csv"


@pytest.mark.parametrize(
    ("check", "problem"),
    [
        ("most = 1, odd = 2", "unknown key 'odd'"),
        ('metric = "delay"', "write least and most, or within"),
        ("paper = 3", "write least and most, or within"),
        ("paper = 3, most = 4", "needs within"),
        ('order = ["A"]', "two values or more"),
        ('order = ["A", "C"]', "there is no curve 'C'"),
        ('order = ["A", "B"], most = 1', "an order has no number"),
        ('ratio = ["A"], most = 1', "ratio has two values"),
        ('ratio = ["A", "B"], within_pct = 1', "has no ratio"),
        ('along = "size", ratio = [2, 7], most = 1', "size = 7"),
        ("at = { size = [2, 9] }, most = 1", "size = 9"),
        ("knee = 4, most = 1", "a knee goes along an axis"),
        ('curves = ["Z"], most = 1', "there is no curve 'Z'"),
        ('under = "dropped_packets", most = 1', "below the line of a ratio"),
        ("within = 1, within_pct = 1", "not both"),
    ],
)
def test_wrong_checks_are_named(folder: Path, check: str, problem: str) -> None:
    with pytest.raises(fl.PlanError, match=problem):
        judged(folder, check)


def test_records_have_the_verdicts_that_were_found(folder: Path) -> None:
    judgement = judged(
        folder, 'metric = "delay", order = ["A", "B"]', 'metric = "delay", curves = ["A"], most = 9'
    )
    text = verdicts.record(judgement, "`firstlight reproduce x`, version 1")
    readme = f"# X\n\n<!-- verdicts simulated -->\n{text}<!-- end -->\n"
    assert (
        verdicts.recorded(readme, "simulated")
        == verdicts.in_short(judgement)
        == ("partly (0 of 1)", ["partly"])
    )
    assert "On simulated hosts: **partly** (0 of 1), `firstlight reproduce x`, version 1." in text
    assert "- mean delay: A < B. Found: 2 packets: 10.0, 30.0; 3 packets: 20.0, 50.0;" in " ".join(
        text.split()
    )
    with pytest.raises(AssertionError, match="no record of verdicts on linux hosts"):
        verdicts.recorded(readme, "linux")


def test_a_statement_that_does_not_hold_has_its_cause_in_the_record_and_the_scoreboard(folder: Path) -> None:
    for order, shown in (("B A", "contradicted (0 of 1), cause shown |"), ("A B", "holds (1 of 1) |")):
        found = judged(folder, f'metric = "delay", at = {{ size = 2 }}, order = {order.split()}')
        statements = tuple(
            replace(s, statement=replace(s.statement, cause="B waits.")) for s in found.statements
        )
        claim = replace(found.claim, statements=tuple(s.statement for s in statements))
        found = replace(found, claim=claim, statements=statements)
        record = verdicts.record(found, "with x")
        assert ("\n  - Cause: B waits.\n" in record) == shown.startswith("contradicted")
        blocks = {"simulated": record, "linux": "On Linux hosts: **not run**.\n"}
        text = "".join(f"<!-- verdicts {hosts} -->\n{block}<!-- end -->\n" for hosts, block in blocks.items())
        (folder / "README.md").write_text(text)
        assert shown in verdicts.scoreboard([found.claim])


def test_what_is_asked_for_is_said_in_words(folder: Path) -> None:
    cases: list[tuple[str, str]] = [
        ('at = { size = 2 }, ratio = ["B", "A"], paper = 3, within_pct = 10',
         "mean delay, B / A, size 2: 3 x, within 10 %"),
        ('curves = ["A"], along = "size", knee = 20, most = 3',
         "size from which on mean delay is 20 us, A: at most 3 packets"),
        ('over = "mean", within = 2', "mean delay, mean: the figure's, within 2 us"),
    ]  # fmt: skip
    for text, words in cases:
        judgement = judged(folder, text)
        assert asked(judgement.claim, judgement.claim.checks[0]) == words


def everything() -> list[Any]:
    """Every claim with no results."""
    return [Outcome(claim, "quick") for claim in find()]


def test_figures_of_different_papers_never_share_a_name() -> None:
    displays = [o.claim.display for o in everything()]
    assert len(displays) == len(set(displays))
    owners: dict[str, str] = {}
    for outcome in everything():
        for measure in outcome.claim.measures:
            name = outcome.claim.of_paper(measure.figure)
            assert owners.setdefault(name, outcome.claim.source.name) == outcome.claim.source.name


def test_verdicts_are_of_the_testbed_s_time_scale() -> None:
    outcome = Outcome(next(c for c in find() if c.folder.name == "fig02a"), "quick")
    for scale, utilization in ((20, 97.0), (1, 40.0)):
        metrics = ["circuit_utilization_pct", "voq_whole_day_packets"]
        summary = {"metric": metrics, "value": [utilization, 8.0]}
        outcome.results[Platform("simulated", scale), "", ()] = Result({"digest": "0"}, {"summary": summary})
    saturated = judge(outcome, "simulated").statements[0]
    assert [f.measured for f in saturated.findings] == ["97.0"]
