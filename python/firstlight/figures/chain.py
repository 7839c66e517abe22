"""The measurement chain: deviations by stage, gaps between stamps, RTTs (DX's Figs. 6 to 8)."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from numpy.typing import NDArray

from firstlight.claims.form import Plot
from firstlight.claims.outcome import Measured
from firstlight.figures.style import BLUE, GREEN, GREY, INK, VERMILION, Figure, draw
from firstlight.numbers import quantiles

Array = NDArray[np.float64]

CALIBRATED = "hardware, calibration"
METRIC = "rtt_deviation_us"
PACKET_US = 1.2
"""Time of a packet of 1500 bytes at 10 Gb/s."""


def deviations(measured: Measured, plot: Plot) -> Figure:
    """A bar per stage on a logarithmic axis, with its 95 % interval, and the paper's numbers where they
    exist."""
    point = measured.points()[0]
    curves = [measured.curves[name] for name in plot.curves or measured.curves]
    curves = [c for c in curves if measured.has(c, point)]
    y = np.arange(len(curves), dtype=float)

    def paint(canvas: Canvas) -> None:
        axes = canvas.subplots()
        for at, curve in zip(y, curves, strict=True):
            mean, interval, _ = measured.estimate(curve, point, METRIC)
            axes.barh(at, mean or 0.0, height=0.62, color=_color(curve.name))
            axes.errorbar(mean or 0.0, at, xerr=interval, color=INK, lw=0.9, capsize=2.5, fmt="none")
        paper = [measured.paper(curve, point, METRIC) for curve in curves]
        rings = [np.nan if value is None else value for value in paper]
        axes.plot(rings, y, "o", color=INK, mfc="none", ms=9, mew=1.3, label="paper")
        axes.axvline(PACKET_US, color=VERMILION, lw=1, ls="--", label="one packet, 1.2 us")
        axes.set_xscale("log")
        axes.set_xlim(0.1, 150)
        axes.set_xticks([0.1, 1, 10, 100], ["0.1", "1", "10", "100"])
        axes.set_yticks(y, [curve.name for curve in curves])
        axes.set_ylim(len(curves) - 0.5, -0.5)
        axes.grid(axis="y", visible=False)
        axes.set_xlabel("Standard deviation of the RTT (us)")
        axes.legend(loc="lower right")

    return draw(plot.name, plot.caption, (7.2, 2.9), paint)


def _color(stage: str) -> str:
    return GREY if stage == "kernel" else GREEN if stage.startswith("hardware") else BLUE


def gaps(measured: Measured, plot: Plot) -> Figure:
    """A panel for sending and one for receiving: the distributions of gaps before and after calibration."""
    looks = {"hardware": (VERMILION, "--", "as stamped"), CALIBRATED: (BLUE, "-", "calibrated")}

    def paint(canvas: Canvas) -> None:
        panels: Sequence[Axes] = canvas.subplots(1, 2, sharey=True)
        for axes, column, title in zip(panels, ("tx_us", "rx_us"), ("sent", "received"), strict=True):
            for stage, (color, line, label) in looks.items():
                _distribution(axes, _series(measured, stage, "chain_gaps", column), color, line, label)
            axes.axvline(PACKET_US, color=GREY, lw=0.9, ls=":")
            axes.set_xlim(0, 4)
            axes.set_title(f"Packets {title}")
            axes.set_xlabel("Gap between timestamps (us)")
        panels[0].set_ylabel("Gaps (%)")
        panels[0].legend(loc="lower right")

    return draw(plot.name, plot.caption, (7.2, 2.9), paint)


def rtts(measured: Measured, plot: Plot) -> Figure:
    """Distributions of the RTT, of the kernel and of calibrated hardware, on a logarithmic axis."""

    def paint(canvas: Canvas) -> None:
        axes = canvas.subplots()
        for stage, line in (("kernel", "--"), (CALIBRATED, "-")):
            _distribution(axes, _series(measured, stage, "chain_rtts", "rtt_us"), _color(stage), line, stage)
        axes.set_xscale("log")
        axes.set_xlim(0.5, 1500)
        axes.set_xticks([1, 10, 100, 1000], ["1", "10", "100", "1000"])
        axes.set_xlabel("RTT (us)")
        axes.set_ylabel("RTTs (%)")
        axes.legend(loc="center")

    return draw(plot.name, plot.caption, (5.0, 2.9), paint)


def _series(measured: Measured, stage: str, table: str, column: str) -> Array:
    """A column of the first repetition of a stage."""
    [result, *_] = measured.results(measured.curves[stage], measured.points()[0])
    return result.table(table)[column].to_numpy(dtype=np.float64)


def _distribution(axes: Axes, values: Array, color: str, line: str, label: str) -> None:
    """The cumulative distribution, thinned to what a figure shows."""
    parts = np.linspace(0, 1, 1001)
    axes.step(quantiles(values, parts.tolist()), 100 * parts, where="post", color=color, ls=line, label=label)
    axes.set_ylim(0, 101)
