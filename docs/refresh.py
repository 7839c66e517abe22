"""Writes what the documents say that is measured: run by `make docs`.

- the output of README's Python lines, and its picture;
- the verdicts and the table of each reproduction's README, from the reproduction in the folder named on the
  command line (default: results), and the tables that the page of its paper has,
  ``<!-- table NAME METRIC -->``;
- the list of numbers in a README's prose that have a row in its table, ``<!-- rows``;
- the scoreboard in ``experiments/README.md``, from the verdicts in those READMEs;
- the reference of experiment keys.
"""

import contextlib
import io
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from firstlight import _core
from firstlight.claims.agreement import agreements
from firstlight.claims.form import Measure
from firstlight.claims.outcome import Outcome
from firstlight.claims.read import find
from firstlight.claims.reproduce import load_reproduction
from firstlight.claims.rows import rows
from firstlight.claims.verdict import judge
from firstlight.pages import prose, verdicts
from firstlight.pages.lines import columns_of, grid, lines_of
from firstlight.runs.run import HOSTS, Hosts

ROOT = Path(__file__).resolve().parents[1]
CODE = re.compile(r"```python\n(.*?)```\n+```text\n(.*?)```", re.DOTALL)
PICTURES = ("etalon/fig09-dynamic-voq/fig09a.png", "etalon/fig10-variants-dynamic/fig10.png")
MEASURED = re.compile(r"(<!-- measured -->\n).*?(<!-- end -->)", re.DOTALL)
SCOREBOARD = re.compile(r"(<!-- scoreboard -->\n)(.*?)(<!-- end -->)", re.DOTALL)
TABLE = re.compile(r"(<!-- table (\S+) (.+?) -->\n).*?(<!-- end -->)", re.DOTALL)


def output_of(code: str) -> str:
    """What the lines print when they are run from the checkout."""
    with contextlib.chdir(ROOT), contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(code, {})
    return printed.getvalue()


def refresh_readme() -> None:
    """Run README's lines and write down what they print."""
    readme = ROOT / "README.md"
    text = readme.read_text()
    match = CODE.search(text)
    assert match, "README has no lines with their output"
    readme.write_text(text[: match.start(2)] + output_of(match[1]) + text[match.end(2) :])


def how(outcome: Outcome, hosts: Sequence[Hosts] = HOSTS) -> str:
    """The command that measured a reproduction on ``hosts``, and the versions that ran it."""
    ran = [h for h in hosts if h in outcome.hosts]
    command = f"firstlight reproduce {outcome.claim.folder.name} --{outcome.mode}"
    versions = {version_on(outcome, h) for h in ran}
    apart = [f"{verdicts.NAMES[h]} hosts {version_on(outcome, h)}" for h in ran]
    return f"`{command}{' --hosts linux' * ('linux' in ran)}`, version " + (
        versions.pop() if len(versions) == 1 else ", ".join(apart)
    )


def version_on(outcome: Outcome, hosts: Hosts) -> str:
    """The version that ran a reproduction on one kind of hosts; of several versions, each."""
    found = {
        r.manifest["version"] for (platform, _, _), r in outcome.results.items() if platform.hosts == hosts
    }
    return " and ".join(sorted(found))


def with_verdicts(text: str, outcome: Outcome) -> str:
    """A README with the verdicts on the hosts that were run, and on those that cannot be judged."""
    for hosts in HOSTS:
        judgement = judge(outcome, hosts)
        place = verdicts.block(hosts)
        assert place.search(text), f"{outcome.claim.name} has no place for verdicts on {hosts} hosts"
        if judgement.verdict != "not run" or not place.search(text)[2]:
            text = place.sub(
                lambda m, j=judgement, h=hosts: m[1] + verdicts.record(j, how(outcome, [h])) + m[3], text
            )
    return text


def refresh_scoreboard() -> None:
    """Write the scoreboard of all claims."""
    page = ROOT / "experiments" / "README.md"
    page.write_text(SCOREBOARD.sub(lambda m: m[1] + verdicts.scoreboard(find()) + m[3], page.read_text()))


def table_of_claim(match: re.Match[str], outcome: Outcome) -> str:
    """A reproduction's place in its README; a quick one leaves the numbers of the full set."""
    kept = "--full" in match[0].split("\n")[1] and outcome.mode == "quick"
    return match[0] if kept else match[1] + measured(outcome) + match[2]


def measured(outcome: Outcome) -> str:
    """A reproduction's summary and table as Markdown."""
    claim, found = outcome.claim, list(rows(outcome))
    lines = [f"{how(outcome)}:", ""]
    lines += [f"- {agreement}" for agreement in agreements(outcome, found)]
    if claim.options.table == "curves":
        return "\n".join([*lines, "", *(curves_of(outcome, measure) for measure in claim.measures)])
    columns = columns_of(claim)
    lines += ["", f"| {' | '.join(columns)} |", f"|{'---|' * 3}{'--:|' * (len(columns) - 3)}"]
    lines += [f"| {' | '.join(line)} |" for line in lines_of(claim, found)]
    return "\n".join(lines) + "\n"


def curves_of(outcome: Outcome, measure: Measure) -> str:
    """A measure of every curve as Markdown."""
    unit = f" ({measure.unit})" if measure.unit else ""
    head, *lines = [f"| {' | '.join(line)} |" for line in grid(outcome, measure)]
    rule = "|---|" + "--:|" * (head.count("|") - 2)
    return "\n".join(
        [f"{measure.label[0].upper()}{measure.label[1:]}{unit}:", "", head, rule, *lines, "", ""]
    )


def refresh_pages(outcomes: Sequence[Outcome]) -> None:
    """Write the tables that a paper's page has of these reproductions."""
    by_page: dict[Path, dict[str, Outcome]] = {}
    for outcome in outcomes:
        page = outcome.claim.folder.parent / "README.md"
        by_page.setdefault(page, {})[outcome.claim.folder.name] = outcome
    for page, known in by_page.items():
        if page.is_file():
            page.write_text(TABLE.sub(lambda m, k=known: table_of(m, k), page.read_text()))


def table_of(match: re.Match[str], known: Mapping[str, Outcome]) -> str:
    """One such table, as it was where its reproduction was not run."""
    if match[2] not in known:
        return match[0]
    outcome = known[match[2]]
    measure = next(m for m in outcome.claim.measures if m.metric == match[3])
    return match[1] + curves_of(outcome, measure) + match[4]


def refresh_claims(results: Path) -> None:
    """Write each claim's table, and the pictures of the documents."""
    outcomes = load_reproduction(results).outcomes
    refresh_pages(outcomes)
    for outcome in outcomes:
        readme = outcome.claim.folder / "README.md"
        text = with_verdicts(readme.read_text(), outcome)
        text, count = MEASURED.subn(lambda m, o=outcome: table_of_claim(m, o), text)
        assert count == 1, f"{readme} has no place for what was measured"
        readme.write_text(prose.with_links(text))
    for picture in PICTURES:
        if (file := results / "figures" / picture).is_file():
            shutil.copy(file, ROOT / "docs" / "images" / file.name)


def main() -> None:
    """Refresh everything that has its source at hand."""
    results = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "results")
    (ROOT / "docs" / "reference" / "spec.md").write_text(_core.reference())
    refresh_readme()
    if results.is_dir():
        refresh_claims(results)
    refresh_scoreboard()


if __name__ == "__main__":
    main()
