"""A demand and its schedules: a heat map, and for each scheduler a chart of circuits over time."""

from collections.abc import Sequence

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import BoundaryNorm, ListedColormap, LogNorm, Normalize, to_hex, to_rgb
from matplotlib.figure import Figure as Canvas
from matplotlib.figure import SubFigure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from firstlight.circuits.schedule import Schedule
from firstlight.circuits.tables import percent, size
from firstlight.figures.style import (
    BLUE,
    GREEN,
    GREY,
    INK,
    ORANGE,
    PURPLE,
    SKY,
    VERMILION,
    Figure,
    draw,
)

FEW = [BLUE, VERMILION, GREEN, ORANGE, SKY, PURPLE, "#F0E442", GREY]
"""Colours of up to eight destination racks; more racks have steps of a colour map."""
NAMED = 16
"""Largest number of racks whose names stand at axes and in bars."""
WIDE = 0.018
"""Width of a letter in a bar, as a share of the week."""
VECTORS = 20_000
"""Largest number of cells that an SVG draws one by one; a larger chart is pixels."""


def schedule_figure(schedules: Sequence[Schedule]) -> Figure:
    """The demand as a heat map, and one chart for each of ``schedules``, which are for the same demand."""
    first = schedules[0]
    colors = rack_colors(len(first.racks))
    rows = len(schedules) // 2 + 1
    lone = len(schedules) == 1

    def paint(canvas: Canvas) -> None:
        body, side = canvas.subfigures(1, 2, squeeze=False, width_ratios=(12, 1))[0]
        widths = (1, 2) if lone else (1, 1)
        cells = body.subplots(rows, 2, squeeze=False, width_ratios=widths).ravel().tolist()
        demand, *panels = cells[: len(schedules) + 1]
        _demand(body, demand, first)
        for axes, one in zip(panels, schedules, strict=True):
            _chart(axes, one, colors)
        for spare in cells[len(schedules) + 1 :]:
            spare.set_visible(False)
        _key(side, first.racks, colors)

    names = ", ".join(one.scheduler for one in schedules)
    caption = f"Demand, and when each rack has a circuit and to which (colour); nights hatched: {names}."
    height = max(2.6, min(4.0, 1.0 + 0.2 * len(first.racks)))
    return draw("schedule", caption, (9.6 if lone else 11.0, height * rows), paint)


def rack_colors(racks: int) -> list[str]:
    """A colour for each destination rack."""
    if racks <= len(FEW):
        return FEW[:racks]
    return [to_hex(color) for color in colormaps["turbo"](np.linspace(0.05, 0.95, racks))]


def _demand(part: SubFigure, axes: Axes, schedule: Schedule) -> None:
    shown = np.ma.masked_equal(schedule.demand.astype(float), 0)
    norm: Normalize | None = None
    if shown.count():
        wide = shown.max() > 20 * shown.min()
        norm = LogNorm(shown.min(), shown.max()) if wide else Normalize(0, shown.max())
    blues = ListedColormap(colormaps["Blues"](np.linspace(0.15, 1, 256)))
    image = axes.imshow(shown, cmap=blues, norm=norm, interpolation="none", aspect="auto")
    axes.grid(visible=False)
    axes.set_title("Demand")
    axes.set_xlabel("To rack")
    axes.set_ylabel("From rack")
    _name(axes, schedule.racks, "xy")
    bar = part.colorbar(image, ax=axes, aspect=25)
    bar.ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: size(value)))
    bar.ax.minorticks_off()


def _chart(axes: Axes, schedule: Schedule, colors: Sequence[str]) -> None:
    """Draw a row for each sending rack, time from left to right."""
    racks = len(schedule.racks)
    edges, cells = [0.0], np.full((racks, 2 * len(schedule.days)), np.nan)
    for at, day in enumerate(schedule.days):
        edges += [day.begins_us, day.begins_us + day.length_us]
        cells[:, 2 * at + 1] = np.where(day.destinations >= 0, day.destinations, np.nan)
    axes.pcolormesh(
        edges,
        np.arange(racks + 1) - 0.5,
        np.ma.masked_invalid(cells),
        cmap=ListedColormap(colors),
        vmin=-0.5,
        vmax=racks - 0.5,
        edgecolor="white" if racks <= NAMED else "none",
        linewidth=0.4,
        rasterized=cells.size > VECTORS,
    )
    nights = [(day.begins_us - day.night_ps / 1e6, day.night_ps / 1e6) for day in schedule.days]
    axes.broken_barh(nights, (-0.5, racks), facecolor="#d9dbdf", edgecolor=GREY, hatch="/////", linewidth=0)
    if racks <= NAMED:
        _label_bars(axes, schedule, colors)
    axes.grid(visible=False)
    axes.set_xlim(0, edges[-1])
    axes.set_ylim(racks - 0.5, -0.5)
    axes.set_xlabel("Time (us)")
    axes.set_ylabel("From rack")
    configurations = f"{schedule.configurations} configuration{'s' if schedule.configurations != 1 else ''}"
    axes.set_title(f"{schedule.scheduler}: {percent(schedule.share_served)} on circuits, {configurations}")
    _name(axes, schedule.racks, "y")


def _label_bars(axes: Axes, schedule: Schedule, colors: Sequence[str]) -> None:
    """Write destinations into the bars that are wide enough."""
    for day in schedule.days:
        for source, to in day.pairs:
            name = schedule.racks[to]
            if day.length_ps / schedule.week_ps >= WIDE * (len(name) + 0.5):
                middle = day.begins_us + day.length_us / 2
                ink = "white" if np.dot(to_rgb(colors[to]), (0.299, 0.587, 0.114)) < 0.55 else "black"
                axes.text(middle, source, name, ha="center", va="center", fontsize=6.5, color=ink)


def _key(part: SubFigure, racks: Sequence[str], colors: Sequence[str]) -> None:
    """Draw the key of colours."""
    norm = BoundaryNorm(np.arange(len(racks) + 1) - 0.5, len(racks))
    mappable = ScalarMappable(norm, ListedColormap(colors))
    bar = part.colorbar(mappable, cax=part.subplots(), label="To rack")
    if len(racks) <= NAMED:
        bar.set_ticks(range(len(racks)), labels=list(racks))
    else:
        bar.set_ticks(MaxNLocator(8, integer=True).tick_values(0, len(racks) - 1)[:-1])
    bar.ax.invert_yaxis()
    bar.ax.minorticks_off()
    bar.outline.set_edgecolor(INK)


def _name(axes: Axes, racks: Sequence[str], which: str) -> None:
    """Set ticks at racks: their names, or some numbers where there are many."""
    long = max(map(len, racks)) > 2
    for letter, axis in (("x", axes.xaxis), ("y", axes.yaxis)):
        if letter not in which:
            continue
        if len(racks) > NAMED:
            axis.set_major_locator(MaxNLocator(8, integer=True))
            continue
        axis.set_ticks(range(len(racks)), labels=list(racks))
        size = 7 if long and len(racks) > len(FEW) else 9
        axis.set_tick_params(length=0, labelsize=size, labelrotation=90 if letter == "x" and long else 0)
