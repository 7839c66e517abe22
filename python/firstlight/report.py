"""Self-contained HTML reports: one file, figures inline, nothing fetched."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from firstlight import core, sweeps
from firstlight import reproduce as reproductions
from firstlight.errors import ResultError
from firstlight.figures.gallery import figures
from firstlight.figures.single import latency_figure, series_figure, sweep_figure
from firstlight.figures.style import Figure
from firstlight.result import Result, is_result, load
from firstlight.tables import COLUMNS, Line, agreement_line, number, signed, verdict_lines
from firstlight.verdict import Outcome, Row

PAGE = "report.html"
REPEATED = 8
"""Rows beyond which a table is folded."""


@dataclass(frozen=True)
class Table:
    """A table of texts; ``folded`` ones open on a click."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: str = ""
    folded: bool = False


def numeric(table: Table, column: int) -> bool:
    """Whether a column holds numbers (or dashes) and is set flush right."""
    return all(
        row[column].lstrip("+-").replace(".", "", 1).isdigit() or row[column] in ("-", "nan")
        for row in table.rows
    )


def write(directory: Path) -> Path:
    """Write the report of whatever ``directory`` holds: a reproduction, a sweep or a result."""
    if (directory / reproductions.INDEX).is_file():
        return write_reproduction(reproductions.load_reproduction(directory))
    if (directory / sweeps.INDEX).is_file():
        return write_sweep(sweeps.load_sweep(directory))
    if is_result(directory):
        return write_result(load(directory))
    what = (
        "no such directory" if not directory.exists() else "holds no result, finished sweep or reproduction"
    )
    raise ResultError(f"{directory}: {what}")


def write_reproduction(done: reproductions.Reproduction) -> Path:
    """The report of a reproduction; its figures are stored as SVG and PNG too."""
    sections = []
    for outcome in done.outcomes:
        drawn = figures(outcome)
        for figure in drawn:
            figure.save(done.path / "figures" / outcome.claim.folder.name)
        sections.append(_section(outcome, drawn))
    headline = [r for r in done.rows() if r.group == "headline"]
    return _render(
        done.path,
        "reproduction.html",
        title="Etalon's figures, reproduced",
        mode=done.mode,
        agreements=[(agreement_line(a), a.met) for a in done.agreements()],
        headline=_headline_table(headline),
        sections=sections,
        runs=sum(len(o.results) for o in done.outcomes),
    )


def _section(outcome: Outcome, drawn: Sequence[Figure]) -> dict[str, Any]:
    lines = verdict_lines(outcome.rows(), medians=True)
    runs = [(curve, outcome.claim.label(at), result) for (curve, at), result in outcome.results.items()]
    digests = [(curve, point, r.digest, str(r.manifest.get("seed", ""))) for curve, point, r in runs]
    warnings = [(curve, point, w) for curve, point, r in runs for w in r.warnings]
    return {
        "claim": outcome.claim,
        "figures": drawn,
        "table": Table(COLUMNS, lines, "Paper, ours, difference", folded=len(lines) > REPEATED),
        "digests": Table(
            ("curve", "point", "digest", "seed"), digests, "Runs and their digests", folded=True
        ),
        "warnings": Table(("curve", "point", "warning"), warnings, "Warnings of the runs", folded=True),
    }


def _headline_table(rows: Sequence[Row]) -> Table | None:
    lines: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        lines.setdefault((row.point, row.metric), [number(row.paper)]).extend(
            [number(row.ours), signed(row.difference)]
        )
    columns = ("comparison", "ratio", "paper", "ours x20", "diff", "ours x1", "diff")
    return Table(columns, [(*key, *values) for key, values in lines.items()]) if lines else None


def write_sweep(sweep: sweeps.Sweep) -> Path:
    """The report of a sweep: its table, and a figure per shown metric."""
    frame = sweep.frame
    columns = [*sweep.axes, *(c for c in sweeps.SHOWN if c in frame), "digest"]
    rows = [[_cell(v) for v in row] for row in frame[columns].itertuples(index=False)]
    return _render(
        sweep.path,
        "single.html",
        title=f"Sweep: {sweep.name}",
        figures=[sweep_figure(sweep)],
        tables=[Table(columns, rows, f"{len(rows)} points")],
        warnings=sorted({w for r in sweep.results for w in r.warnings}),
        manifest=None,
    )


def write_result(result: Result) -> Path:
    """The report of one run."""
    assert result.path is not None
    names = [n for n in ("summary", "flows", "pairs", "week") if n in result.tables]
    tables = [_frame_table(result, n) for n in names]
    drawn = []
    if "series" in result.tables and len(result.series):
        drawn.append(series_figure(result))
    if "latency" in result.tables and len(result.latency):
        drawn.append(latency_figure(result))
    return _render(
        result.path,
        "single.html",
        title=result.name,
        figures=drawn,
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


def _render(folder: Path, template: str, **values: Any) -> Path:
    environment = Environment(
        loader=PackageLoader("firstlight"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["numeric"] = numeric
    page = environment.get_template(template).render(version=core.version(), **values)
    sweeps.replace_text(folder / PAGE, page)
    return folder / PAGE
