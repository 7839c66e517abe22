"""The documents are true: links lead to files, and numbers in prose are those of their rows."""

import importlib
import json
import re
import subprocess
from pathlib import Path

import pytest
from firstlight import core
from firstlight.pages import folding, prose

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    *sorted(ROOT.glob("docs/**/*.md")),
    *sorted(ROOT.glob("experiments/**/*.md")),
]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_to_files_that_exist(page: Path) -> None:
    for target in re.findall(r"\]\((?!https://)([^)#\s]+)", page.read_text()):
        assert (page.parent / target).exists(), f"{page}: {target}"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_tables_have_their_rows_on_lines_of_their_own(page: Path) -> None:
    for line in page.read_text().splitlines():
        assert not re.search(r"\|:?--+:?\|", line) or re.fullmatch(r" *[|:-]+", line), f"{page}: {line}"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_no_conflict_of_a_merge_is_left(page: Path) -> None:
    assert not re.search(r"^(<{7}|={7}|>{7})( |$)", page.read_text(), re.MULTILINE)


@pytest.mark.parametrize("page", sorted(ROOT.glob("experiments/*/*/README.md")), ids=lambda p: p.parent.name)
def test_numbers_in_prose_are_those_of_their_rows(page: Path) -> None:
    assert prose.problems(page.read_text()) == []


def test_the_page_on_rolling_out_dctcp_has_the_numbers_of_its_experiments() -> None:
    """Those of its sentences, and its table of remedies in whole milliseconds on both kinds of hosts."""
    page = (ROOT / "docs/rolling-out-dctcp.md").read_text()
    folders = sorted((ROOT / "experiments/dctcp").glob("*/README.md"))
    assert prose.problems(page, "".join(readme.read_text() for readme in folders)) == []
    cells = prose.cells((ROOT / "experiments/dctcp/remedies/README.md").read_text())
    names = {
        "no remedy": "none",
        "least timeout alone": "RTO_min",
        "delayed ACKs of 1 ms alone": "delayed ACKs",
        "DCTCP without ECT on SYN alone": "DCTCP",
        "all but the least timeout": "all but RTO_min",
    }
    reads = [
        "operations on many keys",
        "bulk read of the key-value store",
        "read of a file",
        "read from the service on TCP",
    ]
    lines = re.findall(r"^\| (.*?) \| (\d.* / .*) \|$", page.partition("## 8.")[2], re.MULTILINE)
    assert len(lines) == 11
    for name, row in lines:
        curve = names.get(name, name.removesuffix(" alone"))
        places = [[f"{kind}{curve} | {read}, p99 (us)" for kind in ("", "Linux, ")] for read in reads]
        ours = [[cells[f"DCTCP 1 to 4 | {place} | ours"] for place in pair] for pair in places]
        assert row == " | ".join(" / ".join(f"{float(us) / 1e3:.0f}" for us in pair) for pair in ours), name


def test_lines_are_at_most_120_characters_wide() -> None:
    """Each line that a person writes or reads as text: not data, notebooks, or what others have made."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    text = re.compile(r".*(\.(rs|py|pyi|md|toml|c|cc|h|java|js|css|html|csv)|Makefile|Kbuild)")
    made = re.compile(r".*\.min\.\w+")
    wide = [
        f"{name}:{number}: {len(line)}"
        for name in names
        if text.fullmatch(name) and not made.fullmatch(name) and (ROOT / name).is_file()
        for number, line in enumerate((ROOT / name).read_text().splitlines(), 1)
        if len(line) > folding.WIDTH and (not name.endswith(".csv") or line.startswith("#"))
    ]
    assert wide == []


def test_how_it_is_built_names_files_that_exist() -> None:
    """Paths of the page, from the root or shortened to their end; NAME and PAPER stand for any name."""
    text = (ROOT / "docs" / "how-it-is-built.md").read_text()
    paths = {path for path in re.findall(r"`([\w/.-]+/[\w/.-]*)`", text) if not path.startswith("/")}
    roots = ("", "crates/", "crates/*/src/", "crates/spec/src/tables/", "crates/transport/src/", "crates/*/")
    folders = (
        *roots,
        "python/firstlight/",
        "python/firstlight/*/",
        "crates/sim/src/fabric/",
        "crates/*/src/*/",
    )
    known = {p: any(any(ROOT.glob(f + re.sub("NAME|PAPER", "*", p))) for f in folders) for p in paths}
    assert len(known) > 100 and [path for path, found in known.items() if not found] == []


def test_the_guide_lists_every_kind_of_workload() -> None:
    experiment = json.loads(core.schema())["anyOf"][0]
    entry = experiment["properties"]["workload"]["items"]
    kinds = [kind["properties"]["kind"]["const"] for kind in entry["oneOf"]]
    guide = (ROOT / "docs" / "guide.md").read_text()
    refresh = importlib.import_module("refresh")
    assert re.findall(r"^- `(\w+)`", refresh.WORKLOADS.findall(guide)[0][1], re.MULTILINE) == kinds
    assert refresh.with_workloads(guide) == guide, "make docs"


def test_wide_tables_have_letters_for_their_longest_texts() -> None:
    head = ("figure", "point", "metric", "paper")
    first, second = (f"{text} of {'each flow and ' * 8}each host" for text in ("mean wait", "throughput"))
    lines = [head, ("1", "a", first, "-"), ("1", "b", second, "2.50"), ("1", "c", "mean", "3.50")]
    table = folding.table(lines, 3)
    assert table[2:5] == ["| 1 | a | (a) | - |", "| 1 | b | (b) | 2.50 |", "| 1 | c | mean | 3.50 |"]
    assert max(map(len, table)) <= folding.WIDTH
    command = folding.folded(f"`firstlight reproduce x`, version {'0.1.0 and ' * 20}0.2.0:")
    wide = folding.unfolded("\n".join([*command, "", *table, "", "End.", "", *table]))
    rows = [f"| {' | '.join(line)} |" for line in lines[1:]]
    assert wide[0] == " ".join(command) and wide[4:7] == rows and wide[-4:-1] == rows
    assert folding.table(lines[::3], 3) == [
        "| figure | point | metric | paper |",
        "|---|---|---|--:|",
        rows[2],
    ]


README = """\
# X

Ours is 81.0 %, the paper's 76.7; the queue holds 8.1 packets, and 4.44 s are ideal (`--set x=81.0`).

<!-- measured -->
8a: utilization (%):

| point | paper | ours | diff |
|---|--:|--:|--:|
| 32 packets | 76.7 | 80.96 | +4.44 |

Mean wait (us):

| tcp | Base | PFC |
|---|--:|--:|
| reno | 12.3 | - |
<!-- end -->
"""


def test_numbers_in_prose_are_found_and_compared_with_their_rows() -> None:
    assert prose.cells(README) == {
        "8a | 32 packets | utilization (%) | paper": "76.7",
        "8a | 32 packets | utilization (%) | ours": "80.96",
        "Mean wait (us) | reno | Base": "12.3",
        "Mean wait (us) | reno | PFC": "-",
    }
    assert prose.problems(README) == [
        "81.0 has rows that the comment does not list: `make docs`",
        "76.7 has rows that the comment does not list: `make docs`",
    ]
    linked = prose.with_links(README)
    assert "<!-- rows\n81.0 = 8a | 32 packets | utilization (%) | ours\n76.7 = 8a" in linked
    assert prose.problems(linked) == []
    assert prose.with_links(linked) == linked


def test_numbers_in_prose_fail_when_their_rows_have_changed() -> None:
    linked = prose.with_links(README)
    wanted = "81.0 is no longer the row's: 8a | 32 packets | utilization (%) | ours is 79.10"
    assert prose.problems(linked.replace("80.96", "79.10")) == [wanted]
    assert prose.problems(prose.with_links(linked.replace("80.96", "79.10"))) == [wanted], "a link stays"
    gone = linked.replace("| 32 packets | 76", "| 64 packets | 76")
    assert (
        "81.0 is no longer the row's: 8a | 32 packets | utilization (%) | ours is no row"
        in prose.problems(gone)
    )
    cut = linked.replace("81.0 %, the", "large, the")
    assert prose.problems(cut) == ["81.0 is listed and stands nowhere in the prose: `make docs`"]
    assert "81.0" not in prose.linked(prose.with_links(cut))


def test_whole_and_short_numbers_are_compared_where_a_person_lists_them() -> None:
    readme = README.replace("Ours is", "1,231 ns of 12 are waits; ours is").replace("12.3 |", "1230.6 |")
    linked = prose.with_links(readme)
    assert "1,231" not in prose.linked(linked)
    listed = linked.replace("\n-->", "\n1,231 = Mean wait (us) | reno | Base\n-->")
    assert prose.problems(listed) == [] and prose.with_links(listed) == listed
    assert prose.problems(listed.replace("1230.6", "1232")) == [
        "1,231 is no longer the row's: Mean wait (us) | reno | Base is 1232"
    ]


def test_ratios_in_prose_are_compared_with_the_quotient_of_two_rows() -> None:
    place = "8a | 32 packets | utilization (%) | ours\n  divided by Mean wait (us) | reno | Base"
    readme = prose.with_links(README.replace("81.0 %", "6.6 times"))
    readme = readme.replace("| paper\n-->", f"| paper\n6.6 = {place}\n-->")
    assert prose.problems(readme) == []
    assert prose.with_links(readme) == readme, "`make docs` keeps it"
    changed = readme.replace("| reno | 12.3", "| reno | 11.3")
    assert prose.problems(changed) == [f"6.6 is no longer the row's: {place} is 7.164602"]
    gone = readme.replace("| reno | 12.3", "| reno | -")
    assert prose.problems(gone) == [f"6.6 is no longer the row's: {place} is 80.96\n  divided by -"]
