"""A ratio of two curves that the paper's text states: ours at each point, beside the paper's numbers."""

from matplotlib.figure import Figure as Canvas

from firstlight.claims.form import Plot, short
from firstlight.claims.outcome import Measured
from firstlight.figures.style import BLUE, VERMILION, Figure, draw, legend_above


def ratios(measured: Measured, plot: Plot) -> Figure:
    """A mark for each point, with bars for the 95 % interval over repetitions, and a shade over the range of
    the numbers in the paper's text."""
    metric = plot.metrics[0]
    checks = [c for c in measured.claim.checks if c.ratio and c.metric == metric]
    stated = [c.paper for c in checks if c.paper is not None]
    points = measured.points()
    above, below = (measured.curves[str(name)] for name in checks[0].ratio)
    ours = [measured.ratio((above, point), (below, point), metric, metric) for point in points]
    known = [(i, e.value, e.interval or 0.0) for i, e in enumerate(ours) if e.value is not None]

    def paint(canvas: Canvas) -> None:
        axes = canvas.subplots()
        axes.axhspan(min(stated), max(stated), color=VERMILION, alpha=0.35, lw=1.5, label="paper")
        places, means, bars = zip(*known, strict=True)
        axes.errorbar(places, means, yerr=bars, fmt="o", color=BLUE, capsize=2, elinewidth=1.0, label="ours")
        axes.axhline(1.0, color=BLUE, lw=0.6, ls=":")
        axes.set_xticks(range(len(points)), [", ".join(short(v) for v in p.values()) for p in points])
        axes.set_xlim(-0.5, len(points) - 0.5)
        axes.set_xlabel(", ".join(axis.label for axis in measured.axes()))
        axes.set_ylabel(plot.label)
        legend_above(canvas, axes)

    return draw(plot.name, plot.caption, (7.2, 2.6), paint)
