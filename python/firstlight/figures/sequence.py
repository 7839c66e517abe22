"""Expected TCP sequence number and VOQ length against time: Figs. 2a, 2b, 8b, 9b and 11b.

*optimal* is the line rate of the network that the pair has at each moment (none in the night before its day),
*packet only* that of a packet network that is always on; both per flow.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from firstlight.claims.claim import At, Curve, Hosts, short
from firstlight.claims.verdict import Outcome
from firstlight.figures.style import (
    GREY,
    INK,
    Figure,
    Look,
    draw,
    ramp,
    shade_days,
)
from firstlight.runs.days import days_of_pair
from firstlight.runs.result import Result

CIRCUIT_KB_US, PACKET_KB_US = 0.625, 0.078125
"""Line rates per flow (KB/us): 80 Gb/s and 10 Gb/s shared by 16 flows."""

NAMES: dict[Hosts, str] = {"simulated": "simulated", "linux": "Linux"}
Array = npt.NDArray[np.float64]


def optimal(result: Result, time_us: Array) -> Array:
    """KB that a flow could have sent by each time, at line rate all the while."""
    week = result.week
    night = float((week["start_us"] - week["end_us"].shift(fill_value=0.0)).iloc[-1])
    edges: list[tuple[float, float]] = [(0.0, PACKET_KB_US)]
    for start, end in days_of_pair(result):
        edges += [(start - night, 0.0), (start, CIRCUIT_KB_US), (end, PACKET_KB_US)]
    at = np.array([t for t, _ in edges] + [max(float(time_us[-1]), edges[-1][0]) + 1.0])
    rates = np.array([r for _, r in edges])
    sent = np.concatenate([[0.0], np.cumsum(np.diff(at) * rates)])
    reached: Array = np.interp(time_us, at, sent)
    return reached


def three_weeks(outcome: Outcome) -> Figure:
    """Fig. 2: three weeks, both time scales, between optimal and packet only; below, the VOQ."""
    claim = outcome.claim
    results = [
        (Look.of(hosts, curve.time_scale, outcome.hosts), outcome.result(curve, (), hosts))
        for hosts, curve in outcome.runs()
    ]

    def paint(canvas: Canvas) -> None:
        top, bottom = canvas.subplots(2, 1, sharex=True, height_ratios=(3, 1.4))
        first = results[0][1]
        unit, divide = _unit(first)
        time = first.series["time_us"].to_numpy(dtype=float)
        _baselines(top, first, time, divide)
        for look, result in results:
            _curve(top, bottom, result, divide, look)
        for axes in (top, bottom):
            shade_days(axes, days_of_pair(first), divide)
        top.set_ylabel("Expected TCP sequence\nnumber (KB)")
        bottom.set_ylabel("VOQ (packets)")
        bottom.set_xlabel(f"Time ({unit})")
        bottom.set_xlim(0, time[-1] / divide)
        for axes in (top, bottom):
            axes.set_ylim(bottom=0)
        top.legend(loc="upper left")

    caption = (
        f"Fig. {claim.figure}: mean in-order sequence number per flow and VOQ length over three weeks. "
        "Optimal and packet only are computed; the paper published no numbers for these curves."
    )
    return draw(f"fig{claim.figure.zfill(3)}", caption, (7.2, 4.0), paint)


def lead_up(outcome: Outcome, hosts: Hosts) -> Figure:
    """Figs. 4b, 8b, 9b and 11b: the time before and during the second week's day, a curve per selected
    point."""
    claim = outcome.claim
    ats = [at for at in outcome.ats(hosts) if at[0] in claim.options["sequence_at"]]
    curves = [c for h, c in outcome.runs() if h == hosts and c.variant != "base"]

    def paint(canvas: Canvas) -> None:
        grid = canvas.subplots(
            2, len(curves), sharex=True, sharey="row", squeeze=False, height_ratios=(3, 1.4)
        )
        for column, curve in enumerate(curves):
            _lead_up_column(outcome, curve, ats, hosts, grid[0][column], grid[1][column])
        grid[1][0].set_ylim(bottom=0)
        grid[0][0].set_ylabel("Expected TCP sequence\nnumber (KB)")
        grid[1][0].set_ylabel("VOQ (packets)")
        axis = claim.axes[0]
        handles, labels = grid[0][0].get_legend_handles_labels()
        title = f"{axis.label}\n({axis.unit})" if axis.unit else axis.label
        canvas.legend(handles, labels, loc="outside right upper", title=title, title_fontsize=8)
        canvas.supxlabel("Time from the day's start (us)", fontsize=9)

    caption = (
        f"Fig. {claim.figure}b, {NAMES[hosts]} hosts: mean in-order sequence number per flow and VOQ length "
        "before and in a day (shaded). Optimal and packet only are computed; the paper published no numbers "
        "for these curves."
    )
    name = f"fig{int(claim.figure):02d}b{'-linux' if hosts == 'linux' else ''}"
    return draw(name, caption, (7.2, 4.2), paint)


def _lead_up_column(
    outcome: Outcome, curve: Curve, ats: Sequence[At], hosts: Hosts, top: Axes, bottom: Axes
) -> None:
    claim = outcome.claim
    first = outcome.result(curve, ats[0], hosts)
    start, end = days_of_pair(first)[1]
    left, right = -float(claim.options["sequence_lead_us"]), end - start + 120.0
    time = first.series["time_us"].to_numpy(dtype=float)
    inside = (time >= start + left) & (time <= start + right)
    base = PACKET_KB_US * (
        start + left
    )  # what the packet network alone had carried: keeps the axis near the curves
    best = optimal(first, time)
    top.plot(time[inside] - start, best[inside] - base, color=INK, lw=1.1, label="optimal")
    for at, color in zip(ats, ramp(len(ats)), strict=True):
        series = outcome.result(curve, at, hosts).series
        top.plot(
            time[inside] - start,
            series["sequence_bytes"].to_numpy(dtype=float)[inside] / 1e3 - base,
            color=color,
            label=short(at[0]),
        )
        bottom.plot(
            time[inside] - start, series["voq_packets"].to_numpy(dtype=float)[inside], color=color, lw=1.2
        )
    top.plot(
        time[inside] - start,
        PACKET_KB_US * time[inside] - base,
        "--",
        color=GREY,
        lw=1.1,
        label="packet only",
    )
    for axes in (top, bottom):
        shade_days(axes, [(0.0, end - start)])
    bottom.set_xlim(left, right)
    top.set_title(Look.of(hosts, curve.time_scale, outcome.hosts).name)


def _baselines(axes: Axes, result: Result, time: Array, divide: float) -> None:
    axes.plot(time / divide, optimal(result, time), color=INK, lw=1.1, label="optimal (computed)")
    axes.plot(time / divide, PACKET_KB_US * time, "--", color=GREY, lw=1.1, label="packet only (computed)")


def _curve(top: Axes, bottom: Axes, result: Result, divide: float, look: Look) -> None:
    series = result.series
    time = series["time_us"].to_numpy(dtype=float) / divide
    top.plot(time, series["sequence_bytes"].to_numpy(dtype=float) / 1e3, **look.curve)
    bottom.plot(time, series["voq_packets"].to_numpy(dtype=float), color=look.color, ls=look.line, lw=1.2)


def _unit(result: Result) -> tuple[str, float]:
    return ("ms", 1e3) if float(result.series["time_us"].max()) > 2e4 else ("us", 1.0)
