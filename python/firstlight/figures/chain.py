"""The measurement chain: deviations by stage, gaps between stamps, RTTs (DX's Figs. 6 to 8)."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from numpy.typing import NDArray

from firstlight.figures.style import BLUE, GREEN, GREY, INK, VERMILION, Figure, draw
from firstlight.verdict import Outcome

METRIC = "rtt_deviation_us"
PACKET_US = 1.2
"""A packet of 1500 bytes at 10 Gb/s."""


def deviations(outcome: Outcome, name: str, caption: str) -> Figure:
    """A bar per stage on a logarithmic axis, from seed to seed, and the paper's numbers where it has any."""
    summaries = [(curve.name, outcome.result(curve, (), hosts).summary) for hosts, curve in outcome.runs()]
    paper = outcome.claim.paper.set_index("curve")[METRIC]

    def paint(canvas: Canvas) -> None:
        axes = canvas.subplots()
        y = np.arange(len(summaries), dtype=float)
        for at, (stage, summary) in zip(y, summaries, strict=True):
            color = GREY if stage == "kernel" else GREEN if stage.startswith("hardware") else BLUE
            value = summary[METRIC]
            axes.barh(at, value, height=0.62, color=color)
            ends = [[value - summary["rtt_deviation_low_us"]], [summary["rtt_deviation_high_us"] - value]]
            axes.errorbar(value, at, xerr=ends, color=INK, lw=0.9, capsize=2.5, fmt="none")
        known = [(paper.get(stage, np.nan), at) for at, (stage, _) in zip(y, summaries, strict=True)]
        axes.plot(*zip(*known, strict=True), "o", color=INK, mfc="none", ms=9, mew=1.3, label="paper")
        axes.axvline(PACKET_US, color=VERMILION, lw=1, ls="--", label="one packet, 1.2 us")
        axes.set_xscale("log")
        axes.set_xlim(0.1, 150)
        axes.set_xticks([0.1, 1, 10, 100], ["0.1", "1", "10", "100"])
        axes.set_yticks(y, [stage for stage, _ in summaries])
        axes.set_ylim(len(summaries) - 0.5, -0.5)
        axes.grid(axis="y", visible=False)
        axes.set_xlabel("Standard deviation of the RTT (us)")
        axes.legend(loc="lower right")

    return draw(name, caption, (7.2, 2.9), paint)


def gaps(outcome: Outcome, name: str, caption: str) -> Figure:
    """A panel for sending and one for receiving: the distribution of gaps before and after calibration."""
    runs = [(h, c) for h, c in outcome.runs() if c.name.startswith("hardware")]

    def paint(canvas: Canvas) -> None:
        panels: Sequence[Axes] = canvas.subplots(1, 2, sharey=True)
        for axes, column, title in zip(panels, ("tx_us", "rx_us"), ("sent", "received"), strict=True):
            for (hosts, curve), color, line in zip(runs, (VERMILION, BLUE), ("--", "-"), strict=True):
                values = outcome.result(curve, (), hosts).table("chain_gaps")[column].to_numpy(dtype=float)
                label = "calibrated" if "calibration" in curve.name else "as stamped"
                _distribution(axes, values, color=color, ls=line, label=label)
            axes.axvline(PACKET_US, color=GREY, lw=0.9, ls=":")
            axes.set_xlim(0, 4)
            axes.set_title(f"Packets {title}")
            axes.set_xlabel("Gap between timestamps (us)")
        panels[0].set_ylabel("Gaps (%)")
        panels[0].legend(loc="lower right")

    return draw(name, caption, (7.2, 2.9), paint)


def rtts(outcome: Outcome, name: str, caption: str) -> Figure:
    """Distributions of the RTT, of the kernel and of calibrated hardware, on a logarithmic axis."""
    looks = {"kernel": (GREY, "--"), "hardware, calibration": (GREEN, "-")}

    def paint(canvas: Canvas) -> None:
        axes = canvas.subplots()
        for hosts, curve in outcome.runs():
            if curve.name in looks:
                color, line = looks[curve.name]
                values = outcome.result(curve, (), hosts).table("chain_rtts")["rtt_us"].to_numpy(dtype=float)
                _distribution(axes, values, color=color, ls=line, label=curve.name)
        axes.set_xscale("log")
        axes.set_xlim(0.5, 1500)
        axes.set_xticks([1, 10, 100, 1000], ["1", "10", "100", "1000"])
        axes.set_xlabel("RTT (us)")
        axes.set_ylabel("RTTs (%)")
        axes.legend(loc="center")

    return draw(name, caption, (5.0, 2.9), paint)


def _distribution(axes: Axes, values: NDArray[np.float64], **look: str) -> None:
    """The cumulative distribution, thinned to what a figure shows."""
    shares = np.linspace(0, 100, 1001)
    axes.step(np.percentile(values, shares, method="inverted_cdf"), shares, where="post", **look)
    axes.set_ylim(0, 101)
