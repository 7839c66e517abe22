"""A ratio of two curves that the paper's text states: ours at each point, beside the paper's numbers."""

import numpy as np
from matplotlib.figure import Figure as Canvas

from firstlight.claims.claim import short
from firstlight.claims.form import Drawn, Fact
from firstlight.claims.measured import Measured, Point, summarized
from firstlight.figures.style import BLUE, VERMILION, Figure, draw, legend_above


def ratios(measured: Measured, drawn: Drawn) -> Figure:
    """For the figure's metric: a mark for each point, bars for the 95 % interval over repetitions (which both
    curves have in common), a shade over what the facts of the paper's text span."""
    facts = [f for f in measured.claim.facts if f.by and f.metric == drawn.metrics[0]]
    stated = [f.paper for f in facts]
    points = measured.points()
    ours = [summarized(_of(measured, facts[0], point)) for point in points]
    known = [(i, mean, bar or 0.0) for i, (mean, bar) in enumerate(ours) if mean is not None]

    def paint(canvas: Canvas) -> None:
        axes = canvas.subplots()
        axes.axhspan(min(stated), max(stated), color=VERMILION, alpha=0.35, lw=1.5, label="paper")
        places, means, bars = zip(*known, strict=True)
        axes.errorbar(places, means, yerr=bars, fmt="o", color=BLUE, capsize=2, elinewidth=1.0, label="ours")
        axes.axhline(1.0, color=BLUE, lw=0.6, ls=":")
        axes.set_xticks(range(len(points)), [", ".join(short(v) for v in p.values()) for p in points])
        axes.set_xlim(-0.5, len(points) - 0.5)
        axes.set_xlabel(", ".join(axis.label for axis in measured.axes()))
        axes.set_ylabel(drawn.label)
        legend_above(canvas, axes)

    return draw(drawn.name, f"{measured.claim.display}: {drawn.caption}", (7.2, 2.6), paint)


def _of(measured: Measured, fact: Fact, point: Point) -> list[float]:
    over = measured.values(measured.curves[fact.by], point, fact.metric)
    under = measured.values(measured.curves[fact.curve], point, fact.metric)
    return list(np.divide(over, under)) if len(over) == len(under) else []
