"""The circuits of a control loop: destinations week after week, and the bytes carried."""

import numpy as np
import pandas as pd
from matplotlib.cm import ScalarMappable
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter

from firstlight.figures.schedules import rack_colors
from firstlight.figures.style import BLUE, GREY, INK, Figure, draw
from firstlight.runs.result import Result

WEEKS = 12
"""How many weeks are drawn day by day."""


def circuits_figure(result: Result) -> Figure:
    """A chart of the first weeks' circuits, and below it each week's bytes: estimated, and carried."""
    frame = result.circuits
    racks = int(max(frame["src"].max(), frame["dst"].max(), len(_racks(result)) - 1)) + 1
    colors = rack_colors(racks)
    first = int(frame["week"].min())
    shown = frame[frame["week"] < first + WEEKS]

    def paint(canvas: Canvas) -> None:
        body, side = canvas.subfigures(1, 2, squeeze=False, width_ratios=(12, 1))[0]
        chart, bytes_ = body.subplots(2, 1, height_ratios=(3, 1.4))
        columns = shown[["start_us", "end_us", "src", "dst"]].to_numpy(dtype=float).tolist()
        for start, end, src, dst in columns:
            bar = [(start / 1e3, (end - start) / 1e3)]
            chart.broken_barh(bar, (src - 0.45, 0.9), facecolor=colors[int(dst)], linewidth=0)
        chart.set_xlim(shown["start_us"].min() / 1e3, shown["end_us"].max() / 1e3)
        chart.set_ylim(racks - 0.5, -0.5)
        chart.set_xlabel("Time (ms)")
        chart.set_ylabel("From rack")
        chart.yaxis.set_major_locator(MaxNLocator(8, integer=True))
        chart.grid(visible=False)
        weeks = _weeks(frame)
        bytes_.plot(
            weeks.index, weeks["demand_bytes"] / 1e6, color=GREY, label="demand of pairs with a circuit"
        )
        bytes_.plot(weeks.index, weeks["carried_bytes"] / 1e6, color=BLUE, label="carried")
        bytes_.set_yscale("log")
        bytes_.yaxis.set_minor_formatter(NullFormatter())
        bytes_.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        bytes_.set_xlabel("Week")
        bytes_.set_ylabel("MB")
        bytes_.legend(loc="best")
        norm = BoundaryNorm(np.arange(racks + 1) - 0.5, racks)
        key = side.colorbar(
            ScalarMappable(norm, ListedColormap(colors)), cax=side.subplots(), label="To rack"
        )
        key.ax.yaxis.set_major_locator(MaxNLocator(8, integer=True))
        key.ax.minorticks_off()
        key.ax.invert_yaxis()
        key.outline.set_edgecolor(INK)

    caption = (
        f"Above: each rack's circuits in weeks {first} to {int(shown['week'].max())}, by destination. "
        "Below: each week's estimated demand of the pairs with a circuit, and what circuits carried."
    )
    return draw("circuits", caption, (9.6, 5.0), paint)


def _weeks(frame: pd.DataFrame) -> pd.DataFrame:
    """Sums of each week; a pair's demand counts once, however many days it has."""
    carried = frame.groupby("week")["carried_bytes"].sum()
    demand = frame.drop_duplicates(["week", "src", "dst"]).astype({"demand_bytes": float})
    return pd.DataFrame(
        {"carried_bytes": carried, "demand_bytes": demand.groupby("week")["demand_bytes"].sum()}
    )


def _racks(result: Result) -> range:
    fabric = result.manifest.get("spec", {}).get("fabric", {})
    return range(int(fabric.get("racks", 0)))
