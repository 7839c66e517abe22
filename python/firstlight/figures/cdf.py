"""Distributions of a table's column: a panel for each point, a line for each curve."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D

from firstlight.claims.form import Curve, Plot
from firstlight.claims.outcome import Measured, Point
from firstlight.figures.looks import look_of
from firstlight.figures.style import Figure, draw


def cdf(measured: Measured, plot: Plot) -> Figure:
    """A step for each value; repetitions are pooled. Where rows have no value, as flows that are not
    complete, the line ends below 100 %."""
    points = measured.points()

    def paint(canvas: Canvas) -> None:
        grid = canvas.subplots(1, len(points), sharey=True, squeeze=False)
        panels: Sequence[Axes] = np.ravel(grid).tolist()
        lines: dict[str, Line2D] = {}
        for axes, point in zip(panels, points, strict=True):
            for curve in (c for c in measured.claim.curves if measured.has(c, point)):
                values, shares = distribution(measured, curve, point, plot)
                [line] = axes.step(values, shares, where="post", **look_of(measured, curve))
                lines.setdefault(curve.name, line)
            axes.set_title(measured.name(point))
            if plot.logarithmic:
                axes.set_xscale("log")
                axes.xaxis.set_major_formatter("{x:g}")
            else:
                axes.set_xlim(left=0)
            axes.set_ylim(0, 101)
        panels[0].set_ylabel("Share (%)")
        canvas.supxlabel(plot.label, fontsize=9)
        canvas.legend(list(lines.values()), list(lines), ncols=5, loc="outside upper left")

    return draw(plot.name, plot.caption, (7.2, 3.0), paint)


def distribution(
    measured: Measured, curve: Curve, point: Point, plot: Plot
) -> tuple[list[float], list[float]]:
    """Values in growing order, and how many percent do not exceed each. The first value stands twice: its
    line starts at zero."""
    values, weights = [], []
    for result in measured.results(curve, point):
        frame = result.table(plot.table)
        frame = frame[frame["name"] == frame["name"].iloc[0]] if "name" in frame else frame
        for column, wanted in plot.where.items():
            frame = frame[frame[column] == wanted]
        values.append(frame[plot.column].to_numpy(dtype=float) / plot.divide)
        weights.append(frame[plot.weight].to_numpy(dtype=float) if plot.weight else np.ones(len(frame)))
    every, counts = np.concatenate(values), np.concatenate(weights)
    order = np.argsort(every, kind="stable")[: np.isfinite(every).sum()]
    share = 100 * np.cumsum(counts[order]) / counts.sum()
    return every[[*order[:1], *order]].tolist(), [*[0.0][: len(order)], *share.tolist()]
