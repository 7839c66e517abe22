"""Completion times against phase length (Fig. 3), reTCP's gain on static VOQs, and its two factors."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from firstlight.claims.claim import short
from firstlight.claims.verdict import TAILS, UTILIZATION, Outcome
from firstlight.figures.style import BLUE, GREY, INK, SCALE_NAMES, VERMILION, Figure, Look, draw, ramp


def completion_times(outcome: Outcome) -> Figure:
    """Fig. 3: a panel per queue size, paper and ours against the phase's length (log)."""
    claim = outcome.claim
    curve = claim.curves[0]
    ats = claim.ats(outcome.mode)
    queues = list(dict.fromkeys(at[0] for at in ats))

    def paint(canvas: Canvas) -> None:
        panels: Sequence[Axes] = np.atleast_1d(canvas.subplots(1, len(queues), sharey=True)).tolist()
        for axes, queue in zip(panels, queues, strict=True):
            paper = claim.paper[claim.paper[claim.axes[0].name] == queue]
            axes.semilogx(paper[claim.axes[1].name], paper["fct_s"], "--", color=INK, lw=1.0, label="paper")
            mine = [(at[1], outcome.metric(curve, at, "fct_s")) for at in ats if at[0] == queue]
            x, y = [m[0] for m in mine], [np.nan if m[1] is None else m[1] for m in mine]
            axes.semilogx(x, y, "o-", color=BLUE, label="ours")
            axes.axhline(float(claim.options["ideal_fct_s"]), color=VERMILION, lw=0.9, ls=":", label="ideal")
            axes.set_title(f"{queue:g} packets")
            axes.set_xticks([1e1, 1e3, 1e5])
        panels[0].set_ylim(bottom=0)
        panels[0].set_ylabel("Completion time (s)")
        canvas.supxlabel("Length of a phase (us)", fontsize=9)
        handles, labels = panels[0].get_legend_handles_labels()
        canvas.legend(handles, labels, ncols=3, loc="outside upper left")

    caption = (
        "Fig. 3: time until ten flows have moved 25 GB together, against the length of the equal phases."
    )
    return draw("fig03", caption, (7.2, 2.9), paint)


def gain(outcome: Outcome) -> Figure:
    """Utilization of reTCP and of the base controller on static VOQs, per time scale."""
    claim = outcome.claim
    ats = outcome.ats()

    def paint(canvas: Canvas) -> None:
        scales = sorted({c.time_scale for c in claim.curves}, reverse=True)
        panels: Sequence[Axes] = canvas.subplots(1, len(scales), sharey=True)
        x = np.arange(len(ats), dtype=float)
        for axes, scale in zip(panels, scales, strict=True):
            for hosts, curve in (run for run in outcome.runs() if run[1].time_scale == scale):
                look = Look.of(hosts, scale, outcome.hosts)
                y = [outcome.metric(curve, at, UTILIZATION, hosts) for at in ats]
                base = curve.variant == "base"
                words: dict[str, Any] = look.plot
                if base:
                    color = INK if look.filled else GREY
                    words = {"color": color, "ls": "--", "marker": "o", "mfc": "none"}
                words["label"] = f"{'CUBIC' if base else 'reTCP'}, {look.name.partition(',')[0]}"
                at_x = [i for i, v in zip(x, y, strict=True) if v is not None]
                axes.plot(at_x, [v for v in y if v is not None], **words)
            axes.set_xticks(x, [short(at[0]) for at in ats])
            axes.set_title(SCALE_NAMES[scale])
            axes.set_ylim(0, 105)
            axes.legend(loc="lower right")
        panels[0].set_ylabel("Circuit utilization (%)")
        canvas.supxlabel(f"{claim.axes[0].label} ({claim.axes[0].unit})", fontsize=9)

    caption = "Section 6.3: reTCP on static VOQs beside CUBIC. The paper gives the gain in words only."
    return draw("retcp-static", caption, (7.2, 2.9), paint)


def factors(outcome: Outcome) -> Figure:
    """Utilization and p99 against reTCP's alpha, a curve per beta; the paper's choice ringed."""
    claim = outcome.claim
    ats = claim.ats(outcome.mode)
    betas = list(dict.fromkeys(at[1] for at in ats))

    def paint(canvas: Canvas) -> None:
        grid = canvas.subplots(2, len(claim.curves), sharex=True, sharey="row", squeeze=False)
        for column, curve in enumerate(claim.curves):
            for row, metric in enumerate((UTILIZATION, TAILS[0])):
                axes: Axes = grid[row][column]
                for beta, color in zip(betas, ramp(len(betas)), strict=True):
                    line = [(at[0], outcome.metric(curve, at, metric)) for at in ats if at[1] == beta]
                    y = [np.nan if v is None else v for _, v in line]
                    axes.plot([a for a, _ in line], y, "o-", color=color, label=f"{beta:g}")
                paper = claim.expected("paper", (2.0, 0.5), curve.time_scale).get(metric)
                if paper is not None and curve.time_scale == 20:
                    axes.plot([2.0], [paper], "o", ms=10, mfc="none", mec=INK, mew=1.4, label="paper (0.5)")
            grid[0][column].set_title(SCALE_NAMES[curve.time_scale])
        grid[0][0].set_ylabel("Circuit\nutilization (%)")
        grid[1][0].set_ylabel("99th percentile\nlatency (us)")
        handles, labels = grid[0][0].get_legend_handles_labels()
        canvas.legend(handles, labels, loc="outside right upper", title="beta", title_fontsize=8)
        canvas.supxlabel("alpha: factor of cwnd when marks begin", fontsize=9)

    caption = "reTCP's factors, VOQs resized 150 us early. The ring is the paper's choice as in its Fig. 11."
    return draw("retcp-alpha-beta", caption, (7.2, 3.8), paint)
