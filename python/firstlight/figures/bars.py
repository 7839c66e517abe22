"""A metric of every curve as a bar, a panel for each metric."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from firstlight.claims.form import Measure, Plot
from firstlight.claims.outcome import Measured
from firstlight.figures.style import BLUE, GREEN, GREY, INK, ORANGE, PURPLE, SKY, VERMILION, Figure, draw

COLORS = (BLUE, VERMILION, SKY, ORANGE, GREEN, PURPLE, GREY)


def bars(measured: Measured, plot: Plot) -> Figure:
    """Bars at the first point: means over repetitions with their 95 % intervals, and their numbers."""
    measures = [next(m for m in measured.claim.measures if m.metric == name) for name in plot.metrics]

    def paint(canvas: Canvas) -> None:
        places = np.ravel(canvas.subplots(1, len(measures), sharey=True, squeeze=False)).tolist()
        for axes, measure in zip(places, measures, strict=True):
            _panel(measured, axes, measure)

    size = (7.2, 0.9 + 0.36 * len(measured.curves))
    return draw(plot.name, plot.caption, size, paint)


def _panel(measured: Measured, axes: Axes, measure: Measure) -> None:
    point = measured.points()[0]
    curves = [c for c in measured.claim.curves if measured.has(c, point)]
    for at, curve in enumerate(curves):
        mean, interval, _ = measured.estimate(curve, point, measure.metric)
        if mean is None:
            continue
        bar = axes.barh(at, mean, height=0.7, color=COLORS[at % len(COLORS)], xerr=interval, ecolor=INK)
        axes.bar_label(bar, fmt="%.3g", padding=3)
    axes.set_yticks(range(len(curves)), [c.name for c in curves])
    axes.set_ylim(len(curves) - 0.5, -0.5)
    axes.margins(x=0.12)
    axes.grid(axis="y", visible=False)
    axes.set_xlabel(f"{measure.label[0].upper()}{measure.label[1:]} ({measure.unit})")
