"""Flows over time: their throughput, and how far they have come (sequence plots)."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure as Canvas

from firstlight.claims.form import Plot
from firstlight.claims.measures.throughput import throughput
from firstlight.claims.measures.units import in_us
from firstlight.claims.outcome import Measured
from firstlight.figures.style import Figure, draw, legend_above, ramp
from firstlight.runs.result import Result

MOST_FLOWS = 7
"""Largest number of flows of one run that a figure shows."""


def flows_figure(result: Result) -> Figure:
    """Throughput of each flow of one run against time, and the bytes that it has delivered in order."""
    received = result.table("throughput").groupby("flow")["goodput_gbps"].sum().sort_values(kind="stable")
    ranks = np.unique(np.linspace(0, len(received) - 1, MOST_FLOWS).round().astype(int))
    shown = sorted(received.index[ranks])
    rates = throughput(result).fillna(0.0)
    end = float(result.manifest["elapsed_us"])
    ends = result.table("flows").set_index("id")

    def paint(canvas: Canvas) -> None:
        top, bottom = canvas.subplots(2, 1, sharex=True)
        for flow, color in zip(shown, ramp(len(shown)), strict=True):
            delivered = progress(result, {"id": flow})
            name = f"host{ends.src[flow]} to host{ends.dst[flow]}"
            top.plot(rates.index / 1e3, rates[flow], color=color, lw=1.0, label=name)
            times = [*delivered.index / 1e3, max(end, delivered.index[-1]) / 1e3]
            reached = [*delivered / 1e6, delivered.iloc[-1] / 1e6]
            bottom.step(times, reached, where="post", color=color, lw=1.2)
        top.set_ylabel("Throughput\n(Gb/s)")
        bottom.set_ylabel("Delivered in order\n(MB)")
        bottom.set_xlabel("Time (ms)")
        for axes in (top, bottom):
            axes.set_ylim(bottom=0)
            axes.margins(x=0.01)
        legend_above(canvas, top)

    caption = "Throughput of flows, and what they have delivered in order: a pause is level"
    of = f"{len(shown)} of {len(received)} flows, from the one that received least to that with most"
    return draw("flows", f"{caption}{f'; {of}' if len(shown) < len(received) else ''}.", (7.2, 4.4), paint)


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


def sequences(measured: Measured, plot: Plot) -> Figure:
    """What some flows together have delivered in order against time, a line for each curve: a pause is level.
    ``where`` chooses the flows by columns of table ``flows``, for example those of one sender."""
    point = next(p for p in measured.points() if plot.at.items() <= p.items())
    asked = [c for c in measured.claim.curves if not plot.curves or c.name in plot.curves]
    curves = [c for c in asked if measured.has(c, point)]

    def paint(canvas: Canvas) -> None:
        axes = canvas.subplots()
        for curve, color in zip(curves, ramp(len(curves)), strict=True):
            delivered = progress(measured.results(curve, point)[0], plot.where)
            axes.step(
                delivered.index / 1e6, delivered / 1e6, where="post", color=color, lw=1.2, label=curve.name
            )
        axes.set_ylabel("Delivered in order (MB)")
        axes.set_xlabel("Time (s)")
        axes.set_ylim(bottom=0)
        axes.margins(x=0.01)
        legend_above(canvas, axes)

    return draw(plot.name, plot.caption, (7.2, 3.2), paint)


def progress(result: Result, where: Mapping[str, Any]) -> "pd.Series[float]":
    """Bytes that the flows with these values in table ``flows`` have delivered in order in the measured time,
    by the end of each interval of ``measure.throughput`` in which they deliver something (us)."""
    flows, intervals = result.table("flows"), result.table("throughput")
    for column, value in where.items():
        flows = flows[flows[column] == value]
    own = intervals[intervals["flow"].isin(flows["id"])]
    every = in_us(result.manifest["spec"]["measure"]["throughput"])
    delivered = own.groupby("time_us")["goodput_gbps"].sum().sort_index().cumsum() * every * 1e3 / 8
    start = pd.Series([0.0], index=[in_us(result.manifest["spec"]["warmup"])])
    delivered.index = delivered.index + every
    whole: pd.Series[float] = pd.concat([start, delivered])
    return whole
