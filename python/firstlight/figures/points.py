"""Utilization and tail latency against one varied quantity: Figs. 8a, 8c, 9a, 9c, 11a and 11c."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from firstlight.claims.claim import At, Curve, Hosts, short
from firstlight.claims.verdict import TAILS, UTILIZATION, Outcome
from firstlight.figures.style import INK, Figure, Look, draw, legend_above

TITLES = ("all packets", "over the circuit", "over the packet network")


def utilization(outcome: Outcome) -> Figure:
    """Bars per point: the paper, each kind of hosts at both time scales; diamonds: what a real Linux stack
    gave before, where no Linux hosts were run."""
    claim = outcome.claim
    ats = outcome.ats()

    def paint(canvas: Canvas) -> None:
        axes = canvas.subplots()
        x = np.arange(len(ats), dtype=float)
        series = [None, *outcome.runs()]
        width = 0.84 / len(series)
        for i, run in enumerate(series):
            at_x = x + (i - (len(series) - 1) / 2) * width
            if run is None:
                values = _reference(outcome, ats, UTILIZATION, 20)
                axes.bar(
                    at_x,
                    values,
                    width,
                    label="paper",
                    facecolor="none",
                    edgecolor=INK,
                    hatch="////",
                    linewidth=0.8,
                )
            else:
                hosts, curve = run
                look = Look.of(hosts, curve.time_scale, outcome.hosts)
                ours = _ours(outcome, curve, ats, UTILIZATION, hosts)
                axes.bar(at_x, ours, width, label=look.name, color=look.color)
                linux = _reference(outcome, ats, UTILIZATION, curve.time_scale, "linux")
                if "linux" not in outcome.hosts and np.isfinite(linux).any():
                    label = "real Linux, same scale" if i == 1 else None
                    axes.plot(
                        at_x,
                        linux,
                        "D",
                        ms=4.5,
                        mfc="white",
                        mec=INK,
                        mew=1.1,
                        label=label,
                        zorder=3,
                        clip_on=False,
                    )
        axes.set_xticks(x, [short(at[0]) for at in ats])
        axes.grid(axis="x", visible=False)
        axes.set_ylim(0, 105)
        axes.set_ylabel("Circuit utilization (%)")
        axes.set_xlabel(_x_label(outcome))
        legend_above(canvas, axes)

    caption = (
        f"Fig. {claim.figure}a: share of the circuit's capacity that carried TCP payload, the paper's and "
        "measured here."
    )
    return draw(_name(outcome, "a"), caption, (7.2, 3.1), paint)


def tails(outcome: Outcome) -> Figure:
    """p99 latency of all packets, of those over the circuit and of those over the packet network."""
    claim = outcome.claim
    ats = outcome.ats()

    def paint(canvas: Canvas) -> None:
        panels: Sequence[Axes] = canvas.subplots(1, 3, sharey=True)
        for axes, metric, title in zip(
            panels, TAILS, ("all packets", "over the circuit", "over the packet network"), strict=True
        ):
            x = np.arange(len(ats))
            axes.plot(
                x, _reference(outcome, ats, metric, 20), "o--", color=INK, mfc="none", ms=7, label="paper"
            )
            for hosts, curve in outcome.runs():
                look = Look.of(hosts, curve.time_scale, outcome.hosts)
                ours = np.array(_ours(outcome, curve, ats, metric, hosts))
                known = np.isfinite(ours)
                axes.plot(x[known], ours[known], **look.plot)
                linux = _reference(outcome, ats, metric, curve.time_scale, "linux")
                if "linux" not in outcome.hosts and np.isfinite(linux).any():
                    label = "real Linux, same scale" if curve.time_scale == 20 else None
                    axes.plot(x, linux, "D", color=look.color, mfc="white", ms=4, mew=1.1, label=label)
            axes.set_title(title)
            step = 2 if len(ats) > 8 else 1
            axes.set_xticks(x[::step], [short(at[0]) for at in ats[::step]])
        panels[0].set_ylim(bottom=0)
        panels[0].set_ylabel("99th percentile latency (us)")
        canvas.supxlabel(_x_label(outcome), fontsize=9)
        legend_above(canvas, panels[0])

    caption = f"Fig. {claim.figure}c: 99th percentile of latency from arrival at the VOQ to delivery."
    return draw(_name(outcome, "c"), caption, (7.2, 3.1), paint)


def _ours(outcome: Outcome, curve: Curve, ats: Sequence[At], metric: str, hosts: Hosts) -> list[float]:
    values = (outcome.metric(curve, at, metric, hosts) for at in ats)
    return [np.nan if value is None else value for value in values]


def _reference(
    outcome: Outcome, ats: Sequence[At], metric: str, scale: int, table: Literal["paper", "linux"] = "paper"
) -> list[float]:
    return [outcome.claim.expected(table, at, scale).get(metric, np.nan) for at in ats]


def _x_label(outcome: Outcome) -> str:
    axis = outcome.claim.axes[0]
    return f"{axis.label} ({axis.unit})"


def _name(outcome: Outcome, panel: str) -> str:
    return f"fig{int(outcome.claim.figure):02d}{panel}"
