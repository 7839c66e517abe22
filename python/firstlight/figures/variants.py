"""Utilization by congestion control: Figs. 4a and 10."""

import numpy as np
from matplotlib.figure import Figure as Canvas

from firstlight.claims.claim import short
from firstlight.claims.verdict import UTILIZATION, Outcome
from firstlight.figures.style import INK, Figure, Look, draw, legend_above


def utilization(outcome: Outcome) -> Figure:
    """A row per variant: the paper's number, and a mark per kind of hosts and time scale."""
    claim = outcome.claim
    ats = outcome.ats()
    runs = [(h, c) for h, c in outcome.runs() if c.variant != "base"]

    def paint(canvas: Canvas) -> None:
        axes = canvas.subplots()
        y = np.arange(len(ats), dtype=float)
        paper = [claim.expected("paper", at, 20).get(UTILIZATION, np.nan) for at in ats]
        axes.plot(paper, y, "o", color=INK, mfc="none", ms=9, mew=1.3, ls="none", label="paper")
        for i, (hosts, curve) in enumerate(runs):
            look = Look.of(hosts, curve.time_scale, outcome.hosts)
            values = [outcome.metric(curve, at, UTILIZATION, hosts) for at in ats]
            known = [v is not None for v in values]
            shift = (i - (len(runs) - 1) / 2) * 0.15
            marks = {**look.plot, "ls": "none", "ms": 5.5}
            axes.plot([v for v in values if v is not None], y[known] + shift, **marks)
        axes.set_yticks(y, [short(at[0]) for at in ats])
        axes.set_ylim(len(ats) - 0.5, -0.5)
        axes.set_xlim(0, 105)
        axes.set_xlabel("Circuit utilization (%)")
        legend_above(canvas, axes)

    what = "share of the circuit's capacity that carried TCP payload, by congestion control"
    caption = f"Fig. {claim.figure}: {what}."
    return draw(f"fig{int(claim.figure):02d}", caption, (7.2, 1.0 + 0.27 * len(ats)), paint)
