"""Self-contained HTML reports: one file, figures inline, nothing fetched."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from firstlight import core
from firstlight.claims import reproduce as reproductions
from firstlight.claims.outcome import Outcome
from firstlight.claims.rows import Row
from firstlight.claims.scoreboard import Score
from firstlight.errors import ResultError
from firstlight.figures import comparison as overlaid
from firstlight.figures.circuits import circuits_figure
from firstlight.figures.gallery import figures
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
from firstlight.runs import compare, sweep
from firstlight.runs.pauses import trees, written
from firstlight.runs.result import Result, is_result, load
from firstlight.runs.staging import replace_text

PAGE = "report.html"
COMPARISON_PAGE = "compare.html"
REPEATED = 8
"""A table with more rows than this is folded."""


@dataclass(frozen=True)
class Table:
    """A table of texts; a ``folded`` one opens on a click."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: str = ""
    folded: bool = False


def numeric(table: Table, column: int) -> bool:
    """Whether a column holds numbers or dashes, which are aligned right."""
    cells = [row[column].lstrip("+-±").removesuffix(" %").removesuffix("*") for row in table.rows]
    return all(c.replace(".", "", 1).isdigit() or c in ("", "nan") for c in cells)


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
    for outcome, rows in zip(done.outcomes, done.rows, strict=True):
        drawn = figures(outcome)
        for figure in drawn:
            figure.save(done.path / "figures" / outcome.claim.name)
        sections.append(_section(outcome, rows, drawn, judged[outcome.claim.name]))
    return _render(
        done.path,
        "reproduction.html",
        title=" and ".join(f"{p.name}'s" for p in done.papers) + " figures, reproduced",
        papers=done.papers,
        mode=done.mode,
        scoreboard=done.scores,
        agreements=done.agreements,
        sections=sections,
        runs=sum(len(o.results) for o in done.outcomes),
        hosts=" and ".join(h.title() if h == "linux" else h for h in done.hosts),
    )


def _section(outcome: Outcome, rows: Sequence[Row], drawn: Sequence[Figure], score: Score) -> dict[str, Any]:
    claim = outcome.claim
    lines = lines_of(claim, rows, detail=True)
    runs = [
        (platform.kind, platform.scale, curve, claim.label(at), r)
        for (platform, curve, at), r in outcome.results.items()
    ]
    columns = ("hosts", "time", "curve", "point")
    digests = [(*place, r.digest, str(r.manifest.get("seed", ""))) for *place, r in runs]
    warnings = [(*place, w) for *place, r in runs for w in r.warnings]
    return {
        "claim": claim,
        "figures": drawn,
        "verdicts": Table(verdicts.COLUMNS, verdicts.lines(score), "Statements"),
        "note": note_of(claim, rows),
        "table": Table(columns_of(claim), lines, "Paper, ours, difference", folded=len(lines) > REPEATED),
        "digests": Table((*columns, "digest", "seed"), digests, "Runs and their digests", folded=True),
        "warnings": Table((*columns, "warning"), warnings, "Warnings of the runs", folded=True),
    }


def write_sweep(done: sweep.Sweep) -> Path:
    """Write the report of a sweep: its table, and a figure of its main metrics."""
    frame = done.frame
    columns = [*done.axes, *(c for c in sweep.SHOWN if c in frame), "digest"]
    rows = [[_cell(v) for v in row] for row in frame[columns].itertuples(index=False)]
    return _render(
        done.path,
        "single.html",
        title=f"Sweep: {done.name}",
        figures=[sweep_figure(done)],
        causes="",
        tables=[Table(columns, rows, f"{len(rows)} points")],
        warnings=sorted({w for r in done.results for w in r.warnings}),
        manifest=None,
    )


def write_comparison(done: compare.Comparison) -> Path:
    """Write the page of a comparison, ``compare.html``."""
    drawn = overlaid.figures(done)
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
        metrics=Table(("metric", "simulated", "Linux", "difference", "unit"), rows, "Measured"),
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
    if "circuits" in result.tables and len(result.circuits):
        drawn.append(circuits_figure(result))
    if "jobs" in result.tables and result.jobs["duration_us"].notna().any():
        drawn.append(jobs_figure(result))
    if "rate_limiters" in result.tables and len(result.rate_limiters):
        drawn.append(rate_limiters_figure(result))
    paused = "pauses" in result.tables and bool(result.table("pauses")["pauses"].any())
    if paused:
        drawn.append(pauses_figure(result))
    return _render(
        result.path,
        "single.html",
        title=result.name,
        figures=drawn,
        causes=written(trees(result)) if paused else "",
        tables=tables,
        warnings=result.warnings,
        manifest=result.manifest,
    )


def _frame_table(result: Result, name: str) -> Table:
    frame = result.table(name)
    rows: list[Line] = [tuple(_cell(v) for v in row) for row in frame.itertuples(index=False)]
    return Table([str(c) for c in frame.columns], rows, name, folded=name != "summary")


def _cell(value: Any) -> str:
    return f"{value:.5g}" if isinstance(value, float) else str(value)


def _render(folder: Path, template: str, name: str = PAGE, **values: Any) -> Path:
    environment = Environment(
        loader=PackageLoader("firstlight.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["numeric"] = numeric
    page = environment.get_template(template).render(version=core.version(), **values)
    replace_text(folder / name, page)
    return folder / name
