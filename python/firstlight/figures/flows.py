"""Throughput of each flow over time: a panel for each curve."""

import numpy as np
from matplotlib.figure import Figure as Canvas

from firstlight.claims.form import Plot
from firstlight.claims.measures.throughput import throughput
from firstlight.claims.outcome import Measured
from firstlight.figures.style import Figure, draw, legend_above, ramp


def throughputs(measured: Measured, plot: Plot) -> Figure:
    """A line for each flow, in the first repetition at the figure's point."""
    point = next(p for p in measured.points() if plot.at.items() <= p.items())
    curves = [c for c in measured.claim.curves if measured.has(c, point)]

    def paint(canvas: Canvas) -> None:
        panels = np.ravel(canvas.subplots(len(curves), 1, sharex=True, sharey=True, squeeze=False)).tolist()
        for axes, curve in zip(panels, curves, strict=True):
            flows = throughput(measured.results(curve, point)[0])
            for i, (number, color) in enumerate(zip(flows, ramp(flows.shape[1]), strict=True), 1):
                axes.plot(flows.index / 1e6, flows[number], color=color, lw=1.0, label=f"flow {i}")
            axes.set_title(curve.name)
            axes.set_ylabel("Throughput\n(Gb/s)")
            axes.set_ylim(bottom=0)
            axes.margins(x=0.01)
        panels[-1].set_xlabel("Time (s)")
        legend_above(canvas, panels[0])

    return draw(plot.name, plot.caption, (7.2, 0.7 + 1.6 * len(curves)), paint)
