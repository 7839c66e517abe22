"""A metric of each point as dots on a row: the paper's, and one for each platform."""

from collections.abc import Sequence

from matplotlib.figure import Figure as Canvas

from firstlight.claims.form import Plot, short
from firstlight.claims.outcome import Measured
from firstlight.figures.looks import Look
from firstlight.figures.style import INK, Figure, draw, legend_above


def dots(views: Sequence[Measured], plot: Plot) -> Figure:
    """A row for each point, of the figure's curve."""
    curve, metric = views[0].curves[(*plot.curves, views[0].claim.curves[0].name)[0]], plot.metrics[0]
    points = views[0].outcome.points()

    def paint(canvas: Canvas) -> None:
        axes = canvas.subplots()
        stated = [(views[0].paper(curve, p, metric), i) for i, p in enumerate(points)]
        axes.plot(*_known(stated), "o", color=INK, mfc="none", ms=9, mew=1.3, label="paper")
        for i, view in enumerate(views):
            shift = (i - (len(views) - 1) / 2) * 0.15
            found = [(view.estimate(curve, p, metric).value, row + shift) for row, p in enumerate(points)]
            axes.plot(*_known(found), **{**Look.of(view).plot, "ls": "none", "ms": 5.5})
        axes.set_yticks(range(len(points)), [", ".join(map(short, p.values())) for p in points])
        axes.set_ylim(len(points) - 0.5, -0.5)
        axes.set_xlim(0, 105 if plot.label.endswith("(%)") else None)
        axes.set_xlabel(plot.label)
        legend_above(canvas, axes)

    return draw(plot.name, plot.caption, (7.2, 1.0 + 0.27 * len(points)), paint)


def _known(found: Sequence[tuple[float | None, float]]) -> tuple[list[float], list[float]]:
    """Values and rows, where there is a value."""
    known = [(value, row) for value, row in found if value is not None]
    return [value for value, _ in known], [row for _, row in known]
