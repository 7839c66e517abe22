"""A measure as a table: a row for each point, a column for each curve."""

from firstlight.measured.form import Measure
from firstlight.measured.rows import Measured
from firstlight.tables import number
from firstlight.verdict import Outcome


def grid(outcome: Outcome, measure: Measure) -> list[tuple[str, ...]]:
    """The head, then a line for each point; a dash where there is no number."""
    table = Measured(outcome)
    curves = [c for c in table.curves.values() if c.name in (measure.curves or table.curves)]
    lines = [
        (table.name(p), *(number(table.row(measure, c, p).ours) if table.has(c, p) else "-" for c in curves))
        for p in table.points()
    ]
    return [(", ".join(a.name for a in table.axes()), *(c.name for c in curves)), *lines]
