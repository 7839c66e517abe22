"""A metric against an axis as columns: the paper's, and one for each platform."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure as Canvas

from firstlight.claims.form import Plot, short
from firstlight.claims.outcome import Measured
from firstlight.figures.looks import Look, axis_label
from firstlight.figures.style import INK, Figure, draw, legend_above

PAPER: dict[str, Any] = {"label": "paper", "fc": "none", "ec": INK, "hatch": "////", "linewidth": 0.8}
DIAMOND: dict[str, Any] = {"ls": "none", "marker": "D", "mfc": "white", "mec": INK, "ms": 4.5, "mew": 1.1}


def columns(views: Sequence[Measured], plot: Plot) -> Figure:
    """A group of columns for each point. Diamonds are earlier measurements on Linux stacks, where no Linux
    hosts were run."""
    outcome, curve, metric = views[0].outcome, views[0].claim.curves[0], plot.metrics[0]
    points = outcome.points()
    width = 0.84 / (len(views) + 1)
    first = np.arange(len(points)) - 0.42 + width / 2

    def paint(canvas: Canvas) -> None:
        axes = canvas.subplots()
        axes.bar(first, _heights([views[0].paper(curve, p, metric) for p in points]), width, **PAPER)
        for i, view in enumerate(views, 1):
            look, places = Look.of(view), first + i * width
            ours = _heights([view.estimate(curve, p, metric).value for p in points])
            axes.bar(places, ours, width, label=look.name, color=look.color)
            before = _heights([view.expected("linux", curve, p, metric) for p in points])
            label = "real Linux, same scale" if i == 1 else None
            if "linux" not in outcome.hosts and np.isfinite(before).any():
                axes.plot(places, before, label=label, zorder=3, clip_on=False, **DIAMOND)
        axes.set_xticks(range(len(points)), [", ".join(map(short, p.values())) for p in points])
        axes.grid(axis="x", visible=False)
        axes.set_ylim(bottom=0)
        axes.set_ylabel(plot.label)
        axes.set_xlabel(axis_label(views[0].axes()[0]))
        legend_above(canvas, axes)

    return draw(plot.name, plot.caption, (7.2, 3.1), paint)


def _heights(values: Sequence[float | None]) -> list[float]:
    return [np.nan if value is None else value for value in values]
