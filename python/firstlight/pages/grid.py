"""A measure as a table: a row for each point on each kind of hosts, a column for each curve."""

from firstlight.claims.claim import Curve
from firstlight.claims.form import Measure
from firstlight.claims.measured import Measured, Point
from firstlight.claims.verdict import Outcome
from firstlight.pages.tables import number


def grid(outcome: Outcome, measure: Measure) -> list[tuple[str, ...]]:
    """The head, then a line for each point, and one below it for the same on Linux hosts if it was run there;
    a dash where there is no number."""
    tables = [Measured(outcome, hosts) for hosts in outcome.hosts]
    curves = [c for c in outcome.claim.curves if c.name in (measure.curves or [c.name])]
    points = list({t.name(p): p for t in tables for p in t.points()}.values())
    lines = [
        (t.label(p), *(_cell(t, measure, c, p) for c in curves))
        for p in points
        for t in tables
        if p in t.points()
    ]
    return [(", ".join(a.name for a in tables[0].axes()), *(c.name for c in curves)), *lines]


def _cell(table: Measured, measure: Measure, curve: Curve, point: Point) -> str:
    return number(table.row(measure, curve, point).ours) if table.has(curve, point) else "-"
