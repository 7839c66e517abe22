"""Completion times by flow size, a bar per curve: DX's Figs. 14 and 15."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from firstlight.claims.form import Plot
from firstlight.claims.measures.fct import metrics
from firstlight.claims.outcome import Measured
from firstlight.figures.style import BLUE, GREEN, INK, ORANGE, PURPLE, VERMILION, Figure, draw

COLORS = (BLUE, VERMILION, GREEN, ORANGE, PURPLE)
QUANTITIES = (("mean_us", "Mean"), ("p99_us", "99th percentile"))
Known = Mapping[str, Mapping[str, float]]
"""Metrics by curve."""


def by_size(measured: Measured, plot: Plot) -> Figure:
    """A column per group of sizes, of the first point and its first repetition: means above, 99th percentiles
    below, with their 95 % intervals."""
    point = measured.points()[0]
    curves = [c for c in measured.claim.curves if measured.has(c, point)]
    known = {c.name: metrics(measured.results(c, point)[0]) for c in curves}
    groups = groups_of(known)

    def paint(canvas: Canvas) -> None:
        grid = canvas.subplots(2, len(groups), squeeze=False, sharex=True)
        for column, group in enumerate(groups):
            for row, (quantity, _) in enumerate(QUANTITIES):
                _bars(grid[row][column], known, f"{quantity}: {group}")
            grid[0][column].set_title(words(group))
        for row, (_, label) in enumerate(QUANTITIES):
            grid[row][0].set_ylabel(f"{label}\ncompletion time (ms)")

    return draw(plot.name, plot.caption, (7.2, 4.0), paint)


def groups_of(known: Known) -> list[str]:
    """The groups of sizes that any curve has a mean of, from small to large, without ``all``."""
    prefix = "mean_us: "
    found = [m.removeprefix(prefix) for its in known.values() for m in its if m.startswith(prefix)]
    return [group for group in dict.fromkeys(found) if group != "all"]


def words(group: str) -> str:
    """A group as a person writes it: ``below 10 kB``, ``10 to 100 kB``, ``100 kB to 10 MB``."""
    if group.startswith("from "):
        return f"above {_spaced(group.removeprefix('from '))}"
    low, _, high = (_spaced(size) if size != "to" else size for size in group.split(" "))
    if low == "0 B":
        return f"below {high}"
    if low.split(" ")[1] == high.split(" ")[1]:
        low = low.split(" ")[0]
    return f"{low} to {high}"


def _spaced(size: str) -> str:
    number = size.rstrip("BkMGT")
    return f"{number} {size.removeprefix(number)}"


def _bars(axes: Axes, known: Known, metric: str) -> None:
    names = list(known)
    x = np.arange(len(names), dtype=float)
    heights = [known[name].get(metric, np.nan) / 1e3 for name in names]
    axes.bar(x, heights, width=0.72, color=COLORS[: len(names)])
    for at, name, height in zip(x, names, heights, strict=True):
        low, high = _ends(known[name], metric)
        reach = [[height - low if np.isfinite(low) else 0.0], [high - height if np.isfinite(high) else 0.0]]
        axes.errorbar(at, height, yerr=reach, color=INK, lw=0.9, capsize=2.5, fmt="none")
    axes.set_xticks(x, names)
    axes.tick_params(axis="x", labelsize=8)
    axes.grid(axis="x", visible=False)
    axes.set_ylim(bottom=0)


def _ends(known: Mapping[str, float], metric: str) -> Sequence[float]:
    """The interval's ends in ms; NaN where one is unknown."""
    column, _, group = metric.rpartition("_us: ")
    return [known.get(f"{column}_{end}_us: {group}", np.nan) / 1e3 for end in ("low", "high")]
