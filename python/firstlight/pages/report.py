"""Self-contained HTML reports: one file, figures inline, nothing fetched."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from firstlight import core
from firstlight.claims import reproduce as reproductions
from firstlight.claims.outcome import Outcome
from firstlight.claims.rows import Row
from firstlight.claims.scoreboard import Score
from firstlight.errors import FirstlightError, ResultError
from firstlight.figures import comparison as overlaid
from firstlight.figures.account import account_figure, first_points, has_account, sweep_account_figure
from firstlight.figures.circuits import circuits_figure
from firstlight.figures.flows import flows_figure
from firstlight.figures.gallery import figures
from firstlight.figures.panels import packed
from firstlight.figures.pauses import pauses_figure
from firstlight.figures.single import (
    jobs_figure,
    latency_figure,
    rate_limiters_figure,
    series_figure,
    sweep_figure,
)
from firstlight.figures.style import Figure
from firstlight.numbers import number
from firstlight.pages import verdicts
from firstlight.pages.lines import Line, columns_of, lines_of, note_of
from firstlight.runs import compare, pool, sweep
from firstlight.runs.again import with_accounts
from firstlight.runs.pauses import trees, written
from firstlight.runs.result import Result, is_result, load
from firstlight.runs.staging import replace_text

TEMPLATES = Path(__file__).parent / "templates"
ASSETS = Path(__file__).parent / "assets"
"""Scripts and styles that pages carry."""
PAGE = "report.html"
COMPARISON_PAGE = "compare.html"
HEAD = 4096
"""Bytes in which a page has its title."""
PLACE = ("hosts", "time", "curve", "point")
"""Columns that name a run."""
Ran = tuple[str, str, str, str, Result]
"""A run and its place."""
REPEATED = 8
"""A table with more rows than this is folded."""


@dataclass(frozen=True)
class Table:
    """A table of texts; a ``folded`` one opens on a click."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: str = ""
    folded: bool = False


def numeric(table: Table) -> str:
    """The columns, counted from 1, that hold numbers or dashes: they are aligned right."""
    return " ".join(str(i + 1) for i in range(len(table.columns)) if _is_numeric(table, i))


def _is_numeric(table: Table, column: int) -> bool:
    cells = [row[column].lstrip("+-±").removesuffix(" %").removesuffix("*") for row in table.rows]
    return all(c.replace(".", "", 1).isdigit() or c == "" for c in cells)


def write(directory: Path) -> Path:
    """Write the report of ``directory``: a reproduction, a sweep, a comparison or a result."""
    if (directory / reproductions.INDEX).is_file():
        return write_reproduction(reproductions.load_reproduction(directory))
    if (directory / sweep.INDEX).is_file():
        return write_sweep(sweep.load_sweep(directory))
    if (directory / compare.INDEX).is_file():
        return write_comparison(compare.load_comparison(directory))
    if is_result(directory):
        return write_result(load(directory))
    what = (
        "no such directory"
        if not directory.exists()
        else "holds no result, finished sweep, comparison or reproduction"
    )
    raise ResultError(f"{directory}: {what}")


def write_reproduction(done: reproductions.Reproduction) -> Path:
    """Write the report of a reproduction, and its figures as SVG and PNG."""
    sections = []
    judged = {score.claim.name: score for score in done.scores}
    pictures = pool.mapped(figures, done.outcomes, done.jobs)
    for outcome, rows, drawn in zip(done.outcomes, done.rows, pictures, strict=True):
        for figure in drawn:
            figure.save(done.path / "figures" / outcome.claim.name)
        sections.append(_section(outcome, rows, drawn, judged[outcome.claim.name]))
    return _render(
        done.path,
        "reproduction.html",
        title=f"Published figures, reproduced: {', '.join(p.name for p in done.papers)}",
        mode=done.mode,
        agreements=done.agreements,
        groups=[
            {
                "paper": paper,
                "name": paper.name.lower().replace(" ", "-"),
                "sections": [s for s in sections if s["claim"].source == paper],
            }
            for paper in done.papers
        ],
        runs=sum(len(o.results) for o in done.outcomes),
        hosts=" and ".join(h.title() if h == "linux" else h for h in done.hosts),
    )


def _section(outcome: Outcome, rows: Sequence[Row], drawn: Sequence[Figure], score: Score) -> dict[str, Any]:
    claim = outcome.claim
    lines = lines_of(claim, rows, detail=True)
    runs: list[Ran] = [
        (platform.kind, platform.scale, curve, claim.label(at), r)
        for (platform, curve, at), r in outcome.results.items()
    ]
    return {
        "claim": claim,
        "score": score,
        "figures": drawn,
        "verdicts": Table(verdicts.COLUMNS, verdicts.lines(score), "Statements"),
        "note": note_of(claim, rows),
        "table": Table(columns_of(claim), lines, "Paper, ours, difference", folded=len(lines) > REPEATED),
        "digests": _digests(runs),
        "warnings": _warnings(runs),
    }


def _digests(runs: Sequence[Ran]) -> Table:
    """A row for each point of a curve, with the digests of its repetitions."""
    found: dict[Line, list[str]] = {}
    for *place, point, result in runs:
        seed = str(result.manifest.get("seed", ""))
        at = point.removesuffix(f"seed {seed}").rstrip(", ")
        found.setdefault((*place, at), []).append(f"{seed}: {result.digest}")
    rows = [(*place, " ".join(its)) for place, its in found.items()]
    return Table((*PLACE, "digests by seed"), rows, "Points and their digests", folded=True)


def _warnings(runs: Sequence[Ran]) -> Table:
    """A row for each warning of a curve, at its first point; those that differ in numbers alone are one."""
    found: dict[Line, list[Line]] = {}
    for *place, point, result in runs:
        for warning in result.warnings:
            found.setdefault((*place, re.sub(r"[\d.]+", "0", warning)), []).append((*place, point, warning))
    rows = [(*its[0], str(len(its))) for its in found.values()]
    return Table((*PLACE, "warning", "runs that have it"), rows, "Warnings of the runs", folded=True)


def write_sweep(done: sweep.Sweep) -> Path:
    """Write the report of a sweep: its table, and a figure of its main metrics."""
    frame = done.frame
    columns = [*done.axes, *(c for c in sweep.SHOWN if c in frame), "digest"]
    rows = [[_cell(v) for v in row] for row in frame[columns].itertuples(index=False)]
    drawn = [sweep_figure(done)]
    names, results = zip(*first_points(done), strict=True)
    accounts, no_causes = _accounts(results)
    points = [(name, result) for name, result in zip(names, accounts, strict=True) if has_account(result)]
    if points:
        drawn.append(sweep_account_figure(points, len(done.means)))
    return _render(
        done.path,
        "single.html",
        title=f"Sweep: {done.name}",
        figures=drawn,
        causes="",
        no_causes=no_causes,
        tables=[Table(columns, rows, f"{len(rows)} points")],
        warnings=sorted({w for r in done.results for w in r.warnings}),
        manifest=None,
    )


def write_comparison(done: compare.Comparison) -> Path:
    """Write the page of a comparison, ``compare.html``."""
    drawn = overlaid.figures(done)
    for hosts, run in (("Simulated", done.simulated), ("Linux", done.linux)):
        drawn += [account_figure(again, hosts) for again in _accounts([run])[0] if has_account(again)]
    for figure in drawn:
        figure.save(done.path / "figures")
    measured = [(d.name, number(d.value), d.unit, d.definition) for d in done.divergence]
    rows: list[Line] = [
        (str(metric), *(_cell(v) for v in values), str(unit))
        for metric, unit, *values in done.frame.itertuples(index=False)
    ]
    return _render(
        done.path,
        "compare.html",
        COMPARISON_PAGE,
        title=f"Simulated and Linux hosts: {done.name}",
        simulated=done.simulated,
        linux=done.linux,
        divergence=Table(("divergence", "value", "unit", "what it is"), measured),
        parting=done.parting,
        metrics=Table(("metric", "simulated", "Linux", "difference", "+-", "unit"), rows, "Measured"),
        figures=drawn,
        warnings=[
            (kind, w)
            for kind, r in (("simulated", done.simulated), ("Linux", done.linux))
            for w in r.warnings
        ],
    )


def write_result(result: Result) -> Path:
    """Write the report of one run."""
    assert result.path is not None
    names = [n for n in ("summary", "jobs", "flows", "pairs", "week", "circuits") if n in result.tables]
    tables = [_frame_table(result, n) for n in names]
    drawn = []
    if "series" in result.tables and len(result.series):
        drawn.append(series_figure(result))
    if "latency" in result.tables and len(result.latency):
        drawn.append(latency_figure(result))
    if "throughput" in result.tables and len(result.table("throughput")):
        drawn.append(flows_figure(result))
    if "circuits" in result.tables and len(result.circuits):
        drawn.append(circuits_figure(result))
    if "jobs" in result.tables and result.jobs["duration_us"].notna().any():
        drawn.append(jobs_figure(result))
    if "rate_limiters" in result.tables and len(result.rate_limiters):
        drawn.append(rate_limiters_figure(result))
    accounts, no_causes = _accounts([result])
    drawn += [account_figure(again) for again in accounts if has_account(again)]
    paused = "pauses" in result.tables and bool(result.table("pauses")["pauses"].any())
    if paused:
        drawn.append(pauses_figure(result))
    return _render(
        result.path,
        "single.html",
        title=result.name,
        figures=drawn,
        causes=written(trees(result)) if paused else "",
        no_causes=no_causes,
        tables=tables,
        warnings=result.warnings,
        manifest=result.manifest,
    )


def _accounts(results: Sequence[Result]) -> tuple[list[Result], str]:
    """The results, with accounts where second runs can record them; and why not otherwise."""
    try:
        return with_accounts(results), ""
    except FirstlightError as e:
        return list(results), str(e)


def _frame_table(result: Result, name: str) -> Table:
    frame = result.table(name)
    rows: list[Line] = [tuple(_cell(v) for v in row) for row in frame.itertuples(index=False)]
    return Table([str(c) for c in frame.columns], rows, name, folded=name != "summary")


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return "-" if isnan(value) else f"{value:.5g}"
    return str(value)


def page_of(template: Path, *, scripts: Sequence[str] = (), nonce: str = "", **values: Any) -> str:
    """A page from a template, which extends ``base.html``. It carries its ``scripts``, and what else it names
    as ``asset``, from the template's folder or :data:`ASSETS`. ``nonce`` marks the scripts that a server
    allows."""

    def asset(name: str) -> Markup:
        folder = next(f for f in (template.parent, ASSETS) if (f / name).is_file())
        text = (folder / name).read_text(encoding="utf-8")
        return Markup(re.sub(r"^/\*! \S+ \(v([\d.]+)\) \*/", r"/*! uPlot \1, MIT licence */", text))

    environment = Environment(
        loader=FileSystemLoader([template.parent, TEMPLATES]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {"numeric": numeric, "asset": asset, "packed": packed}
    page = environment.get_template(template.name)
    return page.render(version=core.version(), scripts=list(scripts), nonce=nonce, **values)


def _render(folder: Path, template: str, name: str = PAGE, **values: Any) -> Path:
    file = folder / name
    if file.exists() and not _is_page(file):
        raise ResultError(f"{file}: exists and is not a report; move it to another place")
    replace_text(file, page_of(TEMPLATES / template, **values))
    return file


def _is_page(file: Path) -> bool:
    """Whether a file is a page of ours, or an empty one."""
    if not file.is_file():
        return False
    try:
        with file.open("rb") as stream:
            begin = stream.read(HEAD)
    except OSError:
        return False
    return not begin or b" - Firstlight</title>" in begin
