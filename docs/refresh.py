"""Writes what the documents say that is measured: run by `make docs`.

- the output of the examples on every page and in the notebooks, and the pictures that they draw;
- the verdicts and the table of each reproduction's README, from the reproduction in the folder named on the
  command line (default: results), and the tables that the page of its paper has,
  ``<!-- table NAME METRIC -->``; numbers of Linux hosts stay, with their version, where the reproduction has
  none;
- the list of numbers in a README's prose that have a row in its table, ``<!-- rows``;
- the scoreboard in ``experiments/README.md``, from the verdicts in those READMEs;
- the kinds of workload in the guide, ``<!-- workloads -->``, from the reference of keys.
"""

import os
import re
import shutil
import sys
import tempfile
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path

import examples
import nbformat
from firstlight.claims.agreement import agreements
from firstlight.claims.form import Measure
from firstlight.claims.outcome import Outcome
from firstlight.claims.read import find
from firstlight.claims.reproduce import load_reproduction
from firstlight.claims.rows import rows
from firstlight.claims.verdict import judge
from firstlight.errors import FirstlightError
from firstlight.pages import folding, prose, verdicts
from firstlight.pages.folding import folded
from firstlight.pages.kept import Kept
from firstlight.pages.lines import Line, by_metric, columns_of, filled, grid, lines_of
from firstlight.runs.run import HOSTS, Hosts
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parents[1]
PICTURES = ("etalon/fig09-dynamic-voq/fig09a.png", "etalon/fig10-variants-dynamic/fig10.png")
DCTCP = ROOT / "experiments/dctcp"
ROLLING_OUT = ROOT / "docs/rolling-out-dctcp.md"
"""A page with the numbers of these experiments."""
NOTHING = Kept("")
"""A README without numbers of Linux hosts."""
MEASURED = re.compile(r"(<!-- measured -->\n)(.*?)(<!-- end -->)", re.DOTALL)
SCOREBOARD = re.compile(r"(<!-- scoreboard -->\n)(.*?)(<!-- end -->)", re.DOTALL)
WORKLOADS = re.compile(r"(<!-- workloads -->\n)(.*?)(<!-- end -->)", re.DOTALL)
TABLE = re.compile(r"(<!-- table (\S+) (.+?) -->\n).*?(<!-- end -->)", re.DOTALL)


def refresh_examples() -> None:
    """Run the examples of each page, and write down what they print and draw."""
    for page in examples.pages():
        text = page.read_text()
        if not any(e.runs for e in examples.examples(text)):
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                page.write_text(examples.refreshed(text, Path(folder)))
            except (RuntimeError, FirstlightError) as e:
                sys.exit(f"{page}: an example fails: {e}")
            for picture in (ROOT / "docs" / "images").glob("*.png"):
                if (drawn := Path(folder, picture.name)).is_file():
                    shutil.copy(drawn, picture)


def refresh_notebooks() -> None:
    """Run the notebooks and keep what they show."""
    for file in sorted((ROOT / "docs" / "notebooks").glob("*.ipynb")):
        notebook = nbformat.read(file, as_version=4)
        with tempfile.TemporaryDirectory() as folder:
            place = {"metadata": {"path": folder}}
            NotebookClient(notebook, timeout=300, resources=place, record_timing=False).execute()
        notebook.metadata["language_info"] = {"name": "python"}
        nbformat.write(notebook, file)


def how(outcome: Outcome, hosts: Sequence[Hosts] = HOSTS, before: str = "") -> str:
    """The command that measured a reproduction on ``hosts``, and the versions that ran it; ``before`` is the
    one of Linux hosts whose numbers are kept."""
    ran = {h: version_on(outcome, h) for h in hosts if h in outcome.hosts}
    if before:
        ran["linux"] = before
    command = f"firstlight reproduce {outcome.claim.folder.name} --{outcome.mode}"
    versions = set(ran.values())
    apart = [f"{verdicts.NAMES[h]} hosts {version}" for h, version in ran.items()]
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


def with_workloads(guide: str) -> str:
    """The guide with the kinds of workload as the reference of keys lists them."""
    reference = (ROOT / "docs" / "reference" / "spec.md").read_text()
    kinds = reference.partition("## `[[workload]]`\n")[2].partition("- **`kind`**")[2].partition("\n- **")[0]
    listed = textwrap.dedent(kinds.partition("\n")[2])
    return WORKLOADS.sub(lambda m: f"{m[1]}\n{listed}\n\n{m[3]}", guide)


def table_of_claim(match: re.Match[str], outcome: Outcome) -> str:
    """A reproduction's place in its README; a quick one leaves the numbers of the full set, one on simulated
    hosts alone those of Linux hosts, and one that ran nothing all."""
    if not outcome.results or ("--full" in match[2].split("\n")[0] and outcome.mode == "quick"):
        return match[0]
    kept = Kept("" if "linux" in outcome.hosts else match[2])
    return match[1] + measured(outcome, kept) + match[3]


def measured(outcome: Outcome, kept: Kept = NOTHING) -> str:
    """A reproduction's summary and table as Markdown."""
    claim, found = outcome.claim, [kept.beside(row) for row in rows(outcome)]
    agree = [*kept.agreements, *(f"- {agreement}" for agreement in agreements(outcome, found))]
    lines = folded(f"{how(outcome, before=kept.version)}:")
    lines += [line for agreement in ["", *agree] * bool(agree) for line in folded(agreement, "  ") or [""]]
    if claim.options.table == "curves":
        tables = {title_of_measure(measure): grid(outcome, measure) for measure in claim.measures}
    else:
        tables = by_metric(columns_of(claim), lines_of(claim, found))
    lines += [line for title, table in kept.joined(tables).items() for line in ["", *titled(title, table)]]
    return "\n".join([*lines, ""])


def title_of_measure(measure: Measure) -> str:
    """The title of a table that has a measure of every curve."""
    unit = f" ({measure.unit})" if measure.unit else ""
    return f"{measure.label[0].upper()}{measure.label[1:]}{unit}"


def titled(title: str, table: Sequence[Line]) -> list[str]:
    """A table of one metric as Markdown, below its title."""
    return [*folded(f"{title}:"), "", *folding.table(filled(table), 1)]


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
    kept = Kept("" if "linux" in outcome.hosts else match[0].removeprefix(match[1]))
    title = title_of_measure(measure)
    table = kept.joined({title: grid(outcome, measure)})[title]
    return "\n".join([match[1].rstrip(), *titled(title, table), match[4]])


def refresh_claims(results: Path) -> None:
    """Write each claim's table, and the pictures of the documents, which have both kinds of hosts."""
    outcomes = load_reproduction(results).outcomes
    refresh_pages([outcome for outcome in outcomes if outcome.results])
    for outcome in outcomes:
        readme = outcome.claim.folder / "README.md"
        text = with_verdicts(readme.read_text(), outcome)
        text, count = MEASURED.subn(lambda m, o=outcome: table_of_claim(m, o), text)
        assert count == 1, f"{readme} has no place for what was measured"
        readme.write_text(prose.with_links(text))
    beside = "".join(readme.read_text() for readme in sorted(DCTCP.glob("*/README.md")))
    ROLLING_OUT.write_text(prose.with_links(ROLLING_OUT.read_text(), beside))
    both = {outcome.claim.name for outcome in outcomes if "linux" in outcome.hosts}
    for picture in PICTURES:
        file = results / "figures" / picture
        if file.is_file() and str(Path(picture).parent) in both:
            shutil.copy(file, ROOT / "docs" / "images" / file.name)


def main() -> None:
    """Refresh everything that has its source at hand."""
    results = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "results")
    guide = ROOT / "docs" / "guide.md"
    guide.write_text(with_workloads(guide.read_text()))
    refresh_notebooks()
    os.environ["MPLBACKEND"] = "Agg"  # after the notebooks, which show their pictures
    refresh_examples()
    if results.is_dir():
        refresh_claims(results)
    refresh_scoreboard()


if __name__ == "__main__":
    main()
