"""A metric of every curve at every value of an axis, as colours with their numbers."""

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure as Canvas

from firstlight.claims.form import Curve, Plot, short
from firstlight.claims.outcome import Measured, Point
from firstlight.figures.style import Figure, draw

ACROSS = 3
"""Number of panels in a row."""
Cells = npt.NDArray[np.float64]


def heat_map(measured: Measured, plot: Plot) -> Figure:
    """Rows are curves, columns the values of the first axis, panels those of the second. Cells are means over
    repetitions. All share one logarithmic scale of colours; light is good."""
    columns, *others = measured.axes()
    assert len(others) < 2, "a heat map has an axis of columns, and one of panels"
    points = measured.points()
    curves = [c for c in measured.claim.curves if any(measured.has(c, p) for p in points)]
    shown = list(dict.fromkeys(p[columns.name] for p in points))
    panels = list(dict.fromkeys(tuple((a, p[a.name]) for a in others) for p in points))
    grids = [
        np.array(
            [
                [_cell(measured, plot, c, {columns.name: v, **{a.name: w for a, w in panel}}) for v in shown]
                for c in curves
            ]
        )
        for panel in panels
    ]
    across = min(len(panels), ACROSS)
    down = -(-len(panels) // across)
    known = np.concatenate([cells[np.isfinite(cells)] for cells in grids])
    norm = LogNorm(known.min(), max(known.max(), 1.001 * known.min()))

    def paint(canvas: Canvas) -> None:
        places = np.ravel(canvas.subplots(down, across, sharey=True, squeeze=False)).tolist()
        for axes in places[len(panels) :]:
            axes.set_visible(False)
        for axes, panel, cells in zip(places[: len(panels)], panels, grids, strict=True):
            _cells(axes, cells, norm)
            axes.set_xticks(np.arange(len(shown)) + 0.5, [short(v) for v in shown])
            axes.set_yticks(np.arange(len(curves)) + 0.5, [c.name for c in curves])
            axes.set_title(", ".join(axis.text(value) for axis, value in panel))
        canvas.supxlabel(columns.label, fontsize=9)
        canvas.suptitle(plot.label, fontsize=9)

    size = (7.2, 0.5 + down * (0.6 + 0.36 * len(curves)))
    return draw(plot.name, plot.caption, size, paint)


def _cell(measured: Measured, plot: Plot, curve: Curve, point: Point) -> float:
    mean = measured.estimate(curve, point, plot.metrics[0]).value
    return np.nan if mean is None else mean / plot.divide


def _cells(axes: Axes, cells: Cells, norm: LogNorm) -> None:
    """Draw each cell's colour and number; a dash where there is none."""
    axes.pcolormesh(np.ma.masked_invalid(cells), norm=norm, cmap="YlOrRd", edgecolor="white", linewidth=1)
    for (row, column), value in np.ndenumerate(cells):
        known = bool(np.isfinite(value))
        color = "white" if known and norm(value) > 0.6 else "black" if known else None
        text = (f"{value:#.3g}".rstrip(".") if value < 999.5 else f"{value:.0f}") if known else "-"
        axes.text(column + 0.5, row + 0.5, text, ha="center", va="center", color=color, fontsize=8)
    axes.set_ylim(len(cells), 0)
    axes.tick_params(length=0)
    axes.grid(visible=False)
    for side in axes.spines.values():
        side.set_visible(False)
