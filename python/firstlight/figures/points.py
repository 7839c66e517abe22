"""Utilization and tail latency against one varied quantity: Figs. 8a, 8c, 9a, 9c, 11a and 11c."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from firstlight.claims import At, Curve
from firstlight.figures.style import INK, SCALE_COLORS, SCALE_NAMES, Figure, draw
from firstlight.verdict import TAILS, UTILIZATION, Outcome

TITLES = ("all packets", "over the circuit", "over the packet network")


def utilization(outcome: Outcome) -> Figure:
    """Bars per point: the paper, ours at both time scales; diamonds: a real Linux stack, where measured."""
    claim = outcome.claim
    ats = claim.ats(outcome.mode)

    def paint(canvas: Canvas) -> None:
        axes = canvas.subplots()
        x = np.arange(len(ats), dtype=float)
        series = [("paper", None), *((SCALE_NAMES[c.time_scale], c) for c in claim.curves)]
        width = 0.8 / len(series)
        for i, (name, curve) in enumerate(series):
            at_x = x + (i - (len(series) - 1) / 2) * width
            if curve is None:
                values = _reference(outcome, ats, UTILIZATION, 20)
                axes.bar(
                    at_x,
                    values,
                    width,
                    label=name,
                    facecolor="none",
                    edgecolor=INK,
                    hatch="////",
                    linewidth=0.8,
                )
            else:
                color = SCALE_COLORS[curve.time_scale]
                axes.bar(at_x, _ours(outcome, curve, ats, UTILIZATION), width, label=name, color=color)
                linux = _reference(outcome, ats, UTILIZATION, curve.time_scale, "linux")
                if np.isfinite(linux).any():
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
        axes.set_xticks(x, [f"{at[0]:g}" for at in ats])
        axes.grid(axis="x", visible=False)
        axes.set_ylim(0, 105)
        axes.set_ylabel("Circuit utilization (%)")
        axes.set_xlabel(_x_label(outcome))
        axes.legend(ncols=4, loc="lower left", bbox_to_anchor=(0, 1.0), borderaxespad=0.2)

    caption = (
        f"Fig. {claim.figure}a: share of the circuit's capacity that carried TCP payload, paper and ours."
    )
    return draw(_name(outcome, "a"), caption, (7.2, 3.1), paint)


def tails(outcome: Outcome) -> Figure:
    """p99 latency of all packets, of those over the circuit and of those over the packet network."""
    claim = outcome.claim
    ats = claim.ats(outcome.mode)

    def paint(canvas: Canvas) -> None:
        panels: Sequence[Axes] = canvas.subplots(1, 3, sharey=True)
        for axes, metric, title in zip(
            panels, TAILS, ("all packets", "over the circuit", "over the packet network"), strict=True
        ):
            x = np.arange(len(ats))
            axes.plot(
                x, _reference(outcome, ats, metric, 20), "o--", color=INK, mfc="none", ms=7, label="paper"
            )
            for curve in claim.curves:
                color = SCALE_COLORS[curve.time_scale]
                marker = "s-" if curve.time_scale == 20 else "^-"
                axes.plot(
                    x,
                    _ours(outcome, curve, ats, metric),
                    marker,
                    color=color,
                    label=SCALE_NAMES[curve.time_scale],
                )
                linux = _reference(outcome, ats, metric, curve.time_scale, "linux")
                if np.isfinite(linux).any():
                    label = "real Linux, same scale" if curve.time_scale == 20 else None
                    axes.plot(x, linux, "D", color=color, mfc="white", ms=4, mew=1.1, label=label)
            axes.set_title(title)
            step = 2 if len(ats) > 8 else 1
            axes.set_xticks(x[::step], [f"{at[0]:g}" for at in ats[::step]])
        panels[0].set_ylim(bottom=0)
        panels[0].set_ylabel("99th percentile latency (us)")
        canvas.supxlabel(_x_label(outcome), fontsize=9)
        handles, labels = panels[0].get_legend_handles_labels()
        canvas.legend(handles, labels, ncols=4, loc="outside upper left")

    caption = f"Fig. {claim.figure}c: 99th percentile of latency from arrival at the VOQ to delivery."
    return draw(_name(outcome, "c"), caption, (7.2, 3.1), paint)


def _ours(outcome: Outcome, curve: Curve, ats: Sequence[At], metric: str) -> list[float]:
    return [value if (value := outcome.metric(curve, at, metric)) is not None else np.nan for at in ats]


def _reference(
    outcome: Outcome, ats: Sequence[At], metric: str, scale: int, table: Literal["paper", "linux"] = "paper"
) -> list[float]:
    return [outcome.claim.expected(table, at, scale).get(metric, np.nan) for at in ats]


def _x_label(outcome: Outcome) -> str:
    axis = outcome.claim.axes[0]
    return f"{axis.label} ({axis.unit})"


def _name(outcome: Outcome, panel: str) -> str:
    return f"fig{int(outcome.claim.figure):02d}{panel}"
