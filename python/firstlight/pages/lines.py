"""Rows of reproductions as lines of text: for the console, for documents and for reports."""

from collections.abc import Iterable, Mapping, Sequence

from firstlight.claims.claim import Claim, Platform
from firstlight.claims.form import Curve, Measure
from firstlight.claims.outcome import Measured, Outcome, Point
from firstlight.claims.rows import Row
from firstlight.numbers import minus, number

Line = tuple[str, ...]
Tables = dict[str, list[Line]]
"""Tables by their titles, each with its head first."""
SCALE_COLUMNS = (
    *("figure", "point", "metric", "paper", "Linux x20", "diff", "simulated x20", "diff"),
    *("Linux x1", "simulated x1", "diff"),
)
"""Columns of a claim at several time scales."""
SCALE_NOTE = (
    "x20: the fabric's times stretched 20-fold against the hosts' clocks, as on the paper's testbed; "
    "x1: exact time. The paper's numbers compare with x20. "
    "Linux: of this reproduction with --hosts linux, else as measured before."
)
NUMBER_COLUMNS = ("figure", "point", "metric", "paper", "ours", "95 %", "diff", "diff %")
"""Columns of a claim at one time scale."""
SEEDS = "95 %: half of the interval of the mean over seeds"
NONE = Row("", "", "", "", None, None, 1)
"""Stands for a platform that was not run."""
ALONE = "95 %, with *: half of the interval that the flows of a single run give"


def signed(value: float | None) -> str:
    """A difference, always with its sign."""
    return "-" if value is None else f"{value:+.2f}" if abs(value) < 10 else f"{value:+.1f}"


def columns_of(claim: Claim) -> Sequence[str]:
    """The columns of :func:`lines_of`."""
    return SCALE_COLUMNS if claim.dilated else NUMBER_COLUMNS


def lines_of(claim: Claim, rows: Iterable[Row], *, detail: bool = False) -> list[Line]:
    """The rows of a claim as lines; those of detail only if asked for."""
    shown = [row for row in rows if detail or not row.detail]
    return scale_lines(shown) if claim.dilated else number_lines(shown)


def note_of(claim: Claim, rows: Iterable[Row]) -> str:
    """The meanings of the columns that these rows have."""
    return SCALE_NOTE if claim.dilated else number_note(rows)


def scale_lines(rows: Sequence[Row]) -> list[Line]:
    """One line for each figure, point and metric: the paper, Linux and simulated hosts at scale 20; Linux and
    simulated hosts in exact time. The first two differences are from the paper, the third from Linux."""
    merged: dict[tuple[str, str, str], dict[Platform, Row]] = {}
    for row in rows:
        merged.setdefault((row.figure, row.point, row.metric), {})[row.platform] = row
    figures = list(dict.fromkeys(figure for figure, _, _ in merged))
    points = list(dict.fromkeys(point for _, point, _ in merged))
    order = sorted(merged, key=lambda key: (figures.index(key[0]), points.index(key[1])))
    return [_scale_line(merged[key]) for key in order]


def _scale_line(found: Mapping[Platform, Row]) -> Line:
    row = next(iter(found.values()))
    paper = next((r.paper for r in found.values() if r.paper is not None), None)
    slow, exact = (found.get(Platform("simulated", scale)) or NONE for scale in (20, 1))
    slow_linux, exact_linux = (_linux(found, scale) for scale in (20, 1))
    return (
        row.figure,
        row.point,
        words(row),
        number(paper),
        number(slow_linux),
        signed(minus(slow_linux, paper)),
        number(slow.ours),
        signed(slow.difference),
        number(exact_linux),
        number(exact.ours),
        signed(exact.linux_difference),
    )


def _linux(found: Mapping[Platform, Row], scale: int) -> float | None:
    """The number on Linux hosts: of this reproduction, else the one that is known beside the simulated
    hosts."""
    if (row := found.get(Platform("linux", scale))) is not None:
        return row.ours
    return found.get(Platform("simulated", scale), NONE).linux


def number_lines(rows: Iterable[Row]) -> list[Line]:
    """One line for each row, figure by figure."""
    rows = list(rows)
    figures = list(dict.fromkeys(r.figure for r in rows))
    return [
        (
            row.figure,
            row.point,
            words(row),
            number(row.paper),
            number(row.ours),
            "-" if row.interval is None else f"±{number(row.interval)}{'*' if row.alone else ''}",
            signed(row.difference),
            "-" if row.percent is None else f"{row.percent:+.0f} %",
        )
        for row in sorted(rows, key=lambda row: figures.index(row.figure))
    ]


def words(row: Row) -> str:
    """The metric with its unit."""
    return f"{row.label} ({row.unit})" if row.unit else row.label


def number_note(rows: Iterable[Row]) -> str:
    """The columns of :func:`number_lines` that these rows have."""
    known = {row.alone for row in rows if row.interval is not None}
    notes = [text for alone, text in ((False, SEEDS), (True, ALONE)) if alone in known]
    return ". ".join([*notes, "diff %: of the paper's number."])


def title_of(row: Row) -> str:
    """The title of the table that has a row in a document."""
    return f"{row.figure}: {words(row)}"


def by_metric(columns: Sequence[str], lines: Iterable[Line]) -> Tables:
    """The lines of :func:`lines_of` as a table for each figure and metric, with the points in its first
    column."""
    tables: Tables = {}
    for figure, point, metric, *numbers in lines:
        head = ("point", *columns[3:])
        tables.setdefault(f"{figure}: {metric}", [head]).append((point, *numbers))
    return tables


def filled(table: Sequence[Line]) -> list[Line]:
    """A table without the columns that have no number."""
    head, *lines = table
    kept = [i for i in range(len(head)) if any(line[i] != "-" for line in lines)]
    return [tuple(line[i] for i in kept) for line in table]


def grid(outcome: Outcome, measure: Measure) -> list[Line]:
    """A measure as a table: the head, then a line for each point on each kind of hosts, a column for each
    curve; a dash where there is no number."""
    curves = [c for c in outcome.claim.curves if c.name in (measure.curves or [c.name])]
    views = outcome.views
    lines = [
        (_place(view, point), *(_cell(view, measure, c, point) for c in curves))
        for point in outcome.points()
        for view in views
        if point in view.points()
    ]
    return [(", ".join(a.name for a in views[0].axes()), *(c.name for c in curves)), *lines]


def _place(view: Measured, point: Point) -> str:
    return ", ".join([view.name(point), *(["Linux"] if view.platform.hosts == "linux" else [])])


def _cell(view: Measured, measure: Measure, curve: Curve, point: Point) -> str:
    return number(view.estimate(curve, point, measure.metric).value)
