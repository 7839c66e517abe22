"""Reproductions: the plans are sound, the rows machine-readable, the report opens offline."""

import json
import shutil
from html.parser import HTMLParser
from itertools import product
from pathlib import Path
from typing import Any, get_args

import firstlight as fl
import pytest
from conftest import Command
from firstlight.claims import read, reproduce
from firstlight.claims.claim import Claim, Platform
from firstlight.claims.form import Mode
from firstlight.claims.outcome import Measured, Outcome
from firstlight.folders import folder
from firstlight.runs.result import Result
from firstlight.runs.run import HOSTS

EXPERIMENTS = folder("experiments")
CLAIMS = read.find(EXPERIMENTS)
ETALON = [c for c in CLAIMS if c.folder.parent.name == "etalon"]
RESULT = Result({"digest": "0"}, {})
KEYS = {"figure", "point", "metric", "paper", "ours", "difference"}


ON_LINUX = ("HDFS", "hotspot", "pause", "queries, TCP", "queries, UDP", "hpc", "timers")
ONLY_ON_LINUX = ("dctcp/stalls",)
DX_ON_LINUX = ("dx/fig09-ladder", "dx/fig10-two-senders", "dx/fig13-fairness")
FULL_ON_LINUX = ("HDFS on Hadoop",)
"""Claims that only the full set on Linux hosts runs."""


def test_all_of_etalon_s_figures_are_there() -> None:
    assert [c.figure for c in ETALON] == [
        *("ADU", "circuit delay", "2a", "2b", "3", "4", "8", "9", "10", "11", "HDFS"),
        *("HDFS on Hadoop", "packet rate", "PFC", "alpha-beta", "notices", "reTCP static"),
        *("schedulers, HDFS", "schedulers, ring", "segregation", "resizing", "three racks", "Table 1"),
    ]


@pytest.mark.usefixtures("any_tick")
@pytest.mark.parametrize("claim", CLAIMS, ids=lambda c: c.name)
def test_every_plan_is_accepted_by_the_core(claim: Claim) -> None:
    for mode in get_args(Mode):
        simulated = reproduce.plan([claim], mode)
        assert bool(simulated) == (claim.figure not in FULL_ON_LINUX and claim.name not in ONLY_ON_LINUX)
        both = reproduce.plan([claim], mode, HOSTS)
        linux = [p for (_, (platform, *_)), p in both.items() if platform.hosts == "linux"]
        assert all(p.spec.overrides["hosts.kind"] == "linux" for p in linux)
        dilated = claim.dilated and claim.figure not in ("alpha-beta", "notices")
        on_linux = (
            dilated
            or claim.figure in ON_LINUX
            or claim.name.startswith("dctcp/")
            or claim.name in DX_ON_LINUX
            or (mode == "full" and claim.figure in FULL_ON_LINUX)
        )
        assert bool(linux) == on_linux
    for hosts in HOSTS:
        assert set(claim.ats("quick", hosts)) <= set(claim.ats("full", hosts))
    assert fl.inspect(claim.folder / "experiment.toml")["name"]
    assert claim.source.title
    assert (claim.folder / "README.md").is_file()


@pytest.mark.parametrize("claim", [c for c in CLAIMS if not c.paper.empty], ids=lambda c: c.name)
def test_expected_numbers_belong_to_points(claim: Claim) -> None:
    assert (claim.folder / "expected.csv").read_text().startswith("# ")
    outcome = Outcome(claim, "full", dict.fromkeys(claim.runs("full", HOSTS), RESULT))
    view = Measured(outcome, Platform("simulated", max(claim.time_scales)))
    metrics = [m.metric for m in claim.measures]
    columns = [name for name in (*(a.name for a in view.axes()), "curve") if name in claim.paper]
    found = {
        (m, *({**p, "curve": c.name}[name] for name in columns))
        for c, p, m in product(claim.curves, outcome.points(), metrics)
        if view.expected("paper", c, p, m) is not None
    }
    assert len(found) == claim.paper[[c for c in claim.paper if c in metrics]].count().sum()


@pytest.fixture
def short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Four of Etalon's claims, with runs of 60 ms."""
    folder = tmp_path / "experiments" / "etalon"
    for name in ("fig02b", "fig08-static-voq", "fig09-dynamic-voq", "fig11-dynamic-voq-retcp"):
        shutil.copytree(EXPERIMENTS / "etalon" / name, folder / name)
        plan = folder / name / "claim.toml"
        plan.write_text(
            plan.read_text().replace('duration = "4.032s"', 'duration = "60ms"\nwarmup = "14.4ms"')
        )
    shutil.copy(EXPERIMENTS / "etalon" / "paper.toml", folder)
    monkeypatch.setenv("FIRSTLIGHT_EXPERIMENTS", str(folder.parent))
    return tmp_path


class Page(HTMLParser):
    """Collects what a page would fetch and whether its tags match."""

    void = frozenset({"meta", "br", "link", "img", "input", "hr"})
    # HTML ends these where their parent ends or the next one begins (13.1.2.4, "Optional tags").
    ends_by_itself = frozenset({"td", "th", "tr", "thead", "tbody", "li", "p", "option"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.fetched: list[str] = []
        self.figures = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in self.void:
            self.open.append(tag)
        self.figures += tag == "figure"
        for name, value in attrs:
            if name in ("src", "href", "xlink:href", "srcset") and not (value or "").startswith("#"):
                self.fetched.append(f"{tag} {name}={value}")

    def handle_endtag(self, tag: str) -> None:
        while self.open[-1] != tag and self.open[-1] in self.ends_by_itself:
            self.open.pop()
        assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in self.void:
            self.open.pop()


def opens_offline(file: Path) -> Page:
    text = file.read_text()
    assert "http:" not in text
    assert "https:" not in text
    assert "@import" not in text
    page = Page()
    page.feed(text)
    page.close()
    assert page.open == []
    assert page.fetched == []
    return page


def test_quick_and_full_together_are_an_error(command: Command) -> None:
    for words in (["--quick", "--full"], ["--full", "--quick"]):
        done = command("reproduce", "fig08", *words)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == "error: --quick and --full are two lengths of runs: give one of them\n"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("fig99", "did you mean fig09-timeouts or fig09-ladder or fig09-dynamic-voq?"),
        ("hotsopt", "did you mean hotspot?"),
        ("etalom", "did you mean etalon?"),
        ("xyzzy", "there are hotspot, hpc, "),
        ("", "there are hotspot, hpc, "),
    ],
)
def test_unknown_reproduction_names_near_misses(name: str, message: str) -> None:
    with pytest.raises(fl.PlanError) as e:
        read.select(read.find(), [name])
    assert str(e.value).startswith(f"no reproduction is called '{name}': {message}")


def test_reproduce_from_rows_to_report(short: Path, command: Command) -> None:
    done = command("reproduce", "--json", "--out", "out")
    assert done.returncode == 0, done.stderr
    rows: list[dict[str, Any]] = json.loads(done.stdout)
    for row in rows:
        assert row.keys() >= KEYS
        assert isinstance(row["figure"], str)
        assert isinstance(row["point"], str)
        assert row["time_scale"] in (1, 20)
        if row["paper"] is not None and row["ours"] is not None:
            assert row["difference"] == pytest.approx(row["ours"] - row["paper"], rel=1e-4, abs=1e-3)
        else:
            assert row["difference"] is None
    figures = {r["figure"].removeprefix("Etalon ") for r in rows}
    assert figures >= {"2b", "8a", "8c", "9a", "9c", "11a", "11c"}
    wanted = "Etalon 8a", "16 packets", 20
    static = next(r for r in rows if (r["figure"], r["point"], r["time_scale"]) == wanted)
    assert static["paper"] == 48.67
    ratios = [r["paper"] for r in rows if "static" in r["point"] and r["time_scale"] == 20]
    assert ratios == [1.87, 2.33, 2.33, 1.91, 1.2, 1.2]
    assert opens_offline(short / "out" / "report.html").figures == 11
    assert (short / "out" / "figures" / "etalon" / "fig08-static-voq" / "fig08a.png").stat().st_size > 1000

    again = command("reproduce", "fig08", "--out", "out")
    assert "12 of them finished before" in again.stderr
    assert "Etalon Fig. 8" in again.stdout
    assert "not run" in again.stdout
    assert command("report", "out").returncode == 0


def test_reports_of_a_run_and_of_a_sweep(small: Path, command: Command, tmp_path: Path) -> None:
    fl.run(small, out=tmp_path / "r")
    fl.sweep(small, axes={"voq.small": [4, 16], "tcp.cc": ["cubic", "newreno"]}, out=tmp_path / "s")
    for name, figures in (("r", 2), ("s", 1)):
        assert command("report", name).returncode == 0
        assert opens_offline(tmp_path / name / "report.html").figures == figures


def test_both_kinds_of_hosts_run_every_variant() -> None:
    fig04, fig10 = (next(c for c in ETALON if c.figure == f) for f in ("4", "10"))
    assert len(fig04.ats("quick")) == 17
    assert fig04.ats("quick") == fig04.ats("quick", "linux")
    static = {p.key for k, p in reproduce.plan([fig04], "quick").items()}
    fig10_runs = reproduce.plan([fig10], "quick").items()
    based = {p.key for (_, (_, curve, _)), p in fig10_runs if curve == "static"}
    assert static == based, "the base of Fig. 10 are the runs of Fig. 4"


def test_wrong_plans_are_named(tmp_path: Path) -> None:
    source = EXPERIMENTS / "etalon" / "fig08-static-voq"
    for old, new, named in (
        ("time_scales = ", "time_scale = ", "unknown key 'time_scale'"),
        ('kind = "columns"', 'kind = "rows"', "kind = 'rows'"),
        ('quote = "As', 'quotes = "As', "unknown key 'quotes'"),
        ('section = "5.1"\n', "", "'section' is missing"),
        ("[[axes]]", 'hosts = ["solaris"]\n\n[[axes]]', "a list of simulated and linux"),
    ):
        folder = tmp_path / new[:9] / named[:5] / "etalon" / "x"
        shutil.copytree(source, folder)
        text = (folder / "claim.toml").read_text()
        assert old in text
        (folder / "claim.toml").write_text(text.replace(old, new))
        with pytest.raises(fl.PlanError, match=named):
            read.read(folder)
