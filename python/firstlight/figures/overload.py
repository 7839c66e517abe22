"""A hotspot over time: throughput of all flows together, and the first watched queue."""

from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from firstlight.claims.form import Curve, Plot
from firstlight.claims.measures.throughput import throughput
from firstlight.claims.outcome import Measured
from firstlight.figures.style import BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILION, Figure, draw, legend_above
from firstlight.runs.result import Result

COLORS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY)
Line = tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]


def overload(measured: Measured, plot: Plot) -> Figure:
    """A column for each point, throughput above, queue below, a line for each of the figure's curves, all of
    the first repetition."""
    points = measured.points()
    curves = [measured.curves[name] for name in plot.curves or measured.curves]

    shown = (("Throughput (Gb/s)", together), ("Largest queue (kB)", queue))

    def paint(canvas: Canvas) -> None:
        rows = canvas.subplots(len(shown), len(points), sharex=True, sharey="row", squeeze=False)
        for axes, (label, line) in zip(rows, shown, strict=True):
            for place, point in zip(axes, points, strict=True):
                for i, curve in enumerate(c for c in curves if measured.has(c, point)):
                    place.plot(*line(measured.results(curve, point)[0]), **_look(curve, i))
            _floor(axes[0], label)
        for top, bottom, point in zip(rows[0], rows[-1], points, strict=True):
            top.set_title(measured.name(point))
            bottom.set_xlabel("Time (ms)")
        legend_above(canvas, rows[0][0])

    size = (7.2, 0.8 + 1.7 * len(shown))
    return draw(plot.name, plot.caption, size, paint)


def together(result: Result) -> Line:
    """Time in ms, and goodput of all flows in Gb/s."""
    total = throughput(result).sum(axis=1)
    return total.index.to_numpy(dtype=float) / 1e3, total.to_numpy(dtype=float)


def queue(result: Result) -> Line:
    """Time in ms, and the largest backlog of the first watched port within that ms, in kB."""
    samples = result.table("queue_samples")
    first = samples[samples["name"] == samples["name"].iloc[0]]
    most = (first["bytes"] / 1e3).groupby(first["time_us"] // 1e3).max()
    return most.index.to_numpy(dtype=float), most.to_numpy(dtype=float)


def _look(curve: Curve, place: int) -> dict[str, Any]:
    return {"color": COLORS[place % len(COLORS)], "lw": 0.9, "label": curve.name}


def _floor(axes: Axes, label: str) -> None:
    axes.set_ylabel(label)
    axes.set_ylim(bottom=0)
    axes.margins(x=0.01)
