"""DX's ladder: measured queueing delay beside the queue, step by step (Fig. 9)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from firstlight.claims.form import Plot
from firstlight.claims.measures.ladder import delays, queue, steps
from firstlight.claims.outcome import Measured
from firstlight.figures.style import BLUE, SKY, VERMILION, Figure, draw
from firstlight.runs.result import Result

SQUARES = 4
"""Number of marks of the switch's queue in a step."""


def ladder(measured: Measured, plot: Plot) -> Figure:
    """A panel per point: a line per curve, the first in full colour, and squares for the switch's queue in
    the first curve's run."""
    points = measured.points()

    def paint(canvas: Canvas) -> None:
        panels: Sequence[Axes] = np.ravel(canvas.subplots(1, len(points), squeeze=False)).tolist()
        for axes, point in zip(panels, points, strict=True):
            curves = [c for c in measured.claim.curves if measured.has(c, point)]
            looks = list(zip(curves, ((BLUE, 1.6), (SKY, 0.8)), strict=False))
            for curve, (color, width) in reversed(looks):
                line = delays(measured.results(curve, point)[0])
                label = f"measured, {curve.name}"
                axes.plot(line["time_us"] / 1e3, line["delay_us"], color=color, lw=width, label=label)
            _queue(axes, measured.results(curves[0], point)[0])
            axes.set_title(measured.name(point))
            axes.set_xlabel("Time (ms)")
            axes.set_xlim(left=0)
            axes.set_ylim(bottom=0)
        panels[0].set_ylabel("Queueing delay (us)")
        handles, labels = panels[0].get_legend_handles_labels()
        canvas.legend(handles[::-1], labels[::-1], ncols=3, loc="outside upper left")

    return draw(plot.name, plot.caption, (7.2, 3.2), paint)


def _queue(axes: Axes, result: Result) -> None:
    """Draw some squares in each step."""
    levels, real = steps(result), queue(result)
    place = (np.arange(SQUARES) + 0.5) / SQUARES
    spans = zip(levels["start_us"], levels["end_us"], strict=True)
    x = np.concatenate([start + place * (end - start) for start, end in spans])
    nearest = np.searchsorted(real["time_us"], x).clip(max=len(real) - 1)
    shown = real.iloc[nearest]
    look: dict[str, Any] = {
        "color": VERMILION,
        "ls": "none",
        "marker": "s",
        "ms": 3,
        "label": "queue at the switch",
    }
    axes.plot(shown["time_us"] / 1e3, shown["delay_us"], **look)
