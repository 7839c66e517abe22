"""Expected TCP sequence number and VOQ length against time: three weeks (Figs. 2a, 2b), or a day and the time
before it (Figs. 4b, 8b, 9b and 11b).

*optimal* is the line rate of the network that the pair has at each moment (none in the night before its day),
*packet only* that of a packet network that is always on; both per flow.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from firstlight.claims.form import Plot, short
from firstlight.claims.measures.units import bits_per_second
from firstlight.claims.outcome import Measured, Point
from firstlight.figures.looks import Look
from firstlight.figures.style import GREY, INK, Figure, draw, ramp, shade_days
from firstlight.runs.days import days_of_pair
from firstlight.runs.result import Result

AFTER_US = 120.0
"""How long after a day the figure ends."""
Array = npt.NDArray[np.float64]


def kb_per_us(result: Result, network: str) -> float:
    """A flow's share of a network's line rate, in kB per us."""
    return bits_per_second(result.manifest["spec"][network]["rate"]) / 8e9 / len(result.flows)


def optimal(result: Result, time_us: Array) -> Array:
    """The kB that a flow could have sent by each time, at line rate."""
    week = result.week
    night = float((week["start_us"] - week["end_us"].shift(fill_value=0.0)).iloc[-1])
    circuit, packet = kb_per_us(result, "circuit"), kb_per_us(result, "packet")
    edges: list[tuple[float, float]] = [(0.0, packet)]
    for start, end in days_of_pair(result):
        edges += [(start - night, 0.0), (start, circuit), (end, packet)]
    at = np.array([t for t, _ in edges] + [max(float(time_us[-1]), edges[-1][0]) + 1.0])
    sent = np.concatenate([[0.0], np.cumsum(np.diff(at) * np.array([r for _, r in edges]))])
    reached: Array = np.interp(time_us, at, sent)
    return reached


def weeks(views: Sequence[Measured], plot: Plot) -> Figure:
    """Three weeks of each platform, between optimal and packet only; below, the VOQ."""
    results = [(Look.of(view), view.results(view.claim.curves[0], {})[0]) for view in views]

    def paint(canvas: Canvas) -> None:
        top, bottom = canvas.subplots(2, 1, sharex=True, height_ratios=(3, 1.4))
        first = results[0][1]
        time = _times(first)
        unit, divide = ("ms", 1e3) if time[-1] > 2e4 else ("us", 1.0)
        packet = kb_per_us(first, "packet") * time
        top.plot(time / divide, optimal(first, time), color=INK, lw=1.1, label="optimal (computed)")
        top.plot(time / divide, packet, "--", color=GREY, lw=1.1, label="packet only (computed)")
        for look, result in results:
            series, at = result.series, _times(result) / divide
            top.plot(at, series["sequence_bytes"] / 1e3, **look.curve)
            bottom.plot(at, series["voq_packets"], **{**look.curve, "lw": 1.2})
        bottom.set_xlabel(f"Time ({unit})")
        bottom.set_xlim(0, time[-1] / divide)
        _label(top, bottom)
        for axes in (top, bottom):
            shade_days(axes, days_of_pair(first), divide)
            axes.set_ylim(bottom=0)
        top.legend(loc="upper left")

    return draw(plot.name, plot.caption, (7.2, 4.0), paint)


def day(views: Sequence[Measured], plot: Plot) -> Figure:
    """The second week's day and the time before it: a column for each time scale, a line for each of the
    figure's points."""
    curve = views[0].curves[(*plot.curves, views[0].claim.curves[0].name)[0]]
    [axis] = views[0].axes()
    points = [p for p in views[0].points() if p[axis.name] in (plot.values or axis.values)]

    def paint(canvas: Canvas) -> None:
        grid = canvas.subplots(
            2, len(views), sharex=True, sharey="row", squeeze=False, height_ratios=(3, 1.4)
        )
        for view, top, bottom in zip(views, *grid, strict=True):
            _day(view, [(p, view.results(curve, p)[0]) for p in points], plot.before_us, top, bottom)
        _label(grid[0][0], grid[1][0])
        grid[1][0].set_ylim(bottom=0)
        handles, labels = grid[0][0].get_legend_handles_labels()
        title = f"{axis.label}\n({axis.unit})" if axis.unit else axis.label
        canvas.legend(handles, labels, loc="outside right upper", title=title, title_fontsize=8)
        canvas.supxlabel("Time from the day's start (us)", fontsize=9)

    return draw(plot.name, plot.caption, (7.2, 4.2), paint)


def _day(
    view: Measured, runs: Sequence[tuple[Point, Result]], before_us: float, top: Axes, bottom: Axes
) -> None:
    first = runs[0][1]
    start, end = days_of_pair(first)[1]
    left, right = -before_us, end - start + AFTER_US
    at = _times(first) - start
    inside = (at >= left) & (at <= right)
    packet = kb_per_us(first, "packet")
    base = packet * (
        start + left
    )  # what the packet network alone had carried: keeps the axis near the curves
    best = optimal(first, _times(first)) - base
    top.plot(at[inside], best[inside], color=INK, lw=1.1, label="optimal")
    for (point, result), color in zip(runs, ramp(len(runs)), strict=True):
        series, [value] = result.series[inside], point.values()
        top.plot(at[inside], series["sequence_bytes"] / 1e3 - base, color=color, label=short(value))
        bottom.plot(at[inside], series["voq_packets"], color=color, lw=1.2)
    top.plot(at[inside], packet * (at[inside] - left), "--", color=GREY, lw=1.1, label="packet only")
    for axes in (top, bottom):
        shade_days(axes, [(0.0, end - start)])
    bottom.set_xlim(left, right)
    top.set_title(Look.of(view).name)


def _times(result: Result) -> Array:
    return result.series["time_us"].to_numpy(dtype=float)


def _label(top: Axes, bottom: Axes) -> None:
    top.set_ylabel("Expected TCP sequence\nnumber (KB)")
    bottom.set_ylabel("VOQ (packets)")
