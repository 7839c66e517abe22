"""Verdicts are those that the READMEs of claims record: the whole quick set is run on simulated hosts."""

import json
import re
import shutil
from pathlib import Path

import pytest
from firstlight import core
from firstlight.claims import reproduce
from firstlight.claims.claim import Claim
from firstlight.claims.read import find
from firstlight.claims.scoreboard import Score
from firstlight.pages import report, verdicts
from firstlight.runs.run import HOSTS

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "target" / "quick"
"""Where the runs lie: those of the same build are not run again."""
CLAIMS = find()


@pytest.fixture(scope="session")
def done() -> reproduce.Reproduction:
    """The quick set of all claims."""
    index = OUT / reproduce.INDEX
    if index.is_file() and json.loads(index.read_text())["build"] != core.build():
        shutil.rmtree(OUT)
    return reproduce.run(CLAIMS, "quick", reproduce.plan(CLAIMS, "quick"), OUT)


@pytest.fixture(scope="session")
def scores(done: reproduce.Reproduction) -> dict[str, Score]:
    """The scoreboard of all claims, by name."""
    return {score.claim.name: score for score in done.scores}


@pytest.mark.parametrize("name", [claim.name for claim in CLAIMS])
def test_verdicts_are_those_in_the_readme(scores: dict[str, Score], name: str) -> None:
    score = scores[name]
    text = (score.claim.folder / "README.md").read_text()
    found = verdicts.in_short(score.judgements["simulated"])
    assert verdicts.recorded(text, "simulated") == found, (
        "a verdict has changed: `firstlight reproduce --quick`, `make docs`, CHANGELOG's 'Results changed'"
    )


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: str(claim.name))
def test_a_contradicted_statement_names_an_experiment_that_shows_the_cause(claim: Claim) -> None:
    text = (claim.folder / "README.md").read_text()
    for hosts in HOSTS:
        for statement, verdict in zip(claim.statements, verdicts.recorded(text, hosts)[1], strict=False):
            if verdict == "contradicted":
                assert shows(claim, statement.cause), (
                    f"{statement.quote[:40]}: write its cause, and what shows it (a curve, a "
                    "claim, a command)"
                )
                assert f"Cause: {statement.cause}" in " ".join(text.split()), "`make docs`"


def shows(claim: Claim, cause: str) -> bool:
    """Whether a cause names an experiment that is there: a curve, another claim, or a command on a file."""
    names = [
        *(f'"{curve.name}"' for curve in claim.curves),
        *(f"`firstlight reproduce {c.folder.name}" for c in CLAIMS),
    ]
    files = re.findall(r"`[^`]*?((?:experiments|crates)/\S+?\.(?:toml|py|rs))\b[^`]*`", cause)
    return any(name in cause for name in names) or any((ROOT / file).is_file() for file in files)


def test_the_report_of_all_claims_has_every_figure_and_can_be_mailed(done: reproduce.Reproduction) -> None:
    page = report.write_reproduction(done).read_text()
    assert page.count("<figure id=") >= sum(len(claim.plots) for claim in CLAIMS if claim.runs("quick"))
    assert page.count('<script type="text/plain">') > 40, "most figures are charts"
    assert len(page.encode()) < 2_500_000, "so that one of the full set, a fifth larger, has less than 3 MB"


def test_the_scoreboard_is_of_the_readmes() -> None:
    assert verdicts.scoreboard(CLAIMS) in (ROOT / "experiments" / "README.md").read_text(), "`make docs`"
