"""Figures of one run and of a sweep."""

from itertools import cycle
from numbers import Real

import numpy as np
import pandas as pd
from matplotlib.figure import Figure as Canvas

from firstlight.errors import FirstlightError
from firstlight.figures.style import BLUE, GREEN, INK, VERMILION, Figure, draw, legend_above, ramp, shade_days
from firstlight.runs.days import days_of_pair
from firstlight.runs.result import Result
from firstlight.runs.sweep import SHOWN, Sweep

COLORS = (BLUE, VERMILION, GREEN, INK)
MOST_CURVES = 7
"""Largest number of curves, each with a colour of its own."""


def series_figure(result: Result) -> Figure:
    """Mean sequence number and VOQ length of the measured pair over the folded weeks."""
    series = result.series
    try:
        days = days_of_pair(result)
    except (FirstlightError, KeyError):
        days = []

    def paint(canvas: Canvas) -> None:
        top, bottom = canvas.subplots(2, 1, sharex=True, height_ratios=(3, 1.4))
        top.plot(series["time_us"], series["sequence_bytes"] / 1e3, color=BLUE)
        bottom.plot(series["time_us"], series["voq_packets"], color=VERMILION, lw=1.2)
        for axes in (top, bottom):
            shade_days(axes, days)
            axes.set_ylim(bottom=0)
        bottom.set_xlim(0, float(series["time_us"].max()))
        top.set_ylabel("Expected TCP sequence\nnumber per flow (KB)")
        bottom.set_ylabel("VOQ (packets)")
        bottom.set_xlabel("Time (us)")

    caption = "Mean in-order sequence number per flow and VOQ length of the measured pair; days shaded."
    return draw("series", caption, (7.2, 4.0), paint)


def latency_figure(result: Result) -> Figure:
    """Distribution of packet latency, by network."""
    frame = result.latency

    def paint(canvas: Canvas) -> None:
        axes = canvas.subplots()
        for network, color in (("all", INK), ("circuit", BLUE), ("packet", GREEN)):
            part = frame if network == "all" else frame[frame["network"] == network]
            part = part.sort_values("latency_us")
            if part.empty or (network == "all" and "all" in set(frame["network"])):
                continue
            share = 100 * np.cumsum(part["packets"].to_numpy(dtype=float)) / part["packets"].sum()
            axes.step(part["latency_us"], share, where="post", color=color, label=network)
        axes.set_xlabel("Latency from VOQ arrival to delivery after the switch (us)")
        axes.set_ylabel("Packets (%)")
        axes.set_ylim(0, 101)
        axes.set_xlim(left=0)
        axes.legend(title="network", loc="lower right")

    return draw(
        "latency",
        "Cumulative distribution of packet latency, by the network that carried it.",
        (7.2, 3.0),
        paint,
    )


def jobs_figure(result: Result) -> Figure:
    """Distribution of the times of complete jobs, by workload."""
    done = result.jobs.dropna(subset="duration_us")

    def paint(canvas: Canvas) -> None:
        axes = canvas.subplots()
        for (name, part), color in zip(done.groupby("workload", sort=False), cycle(COLORS)):
            times = np.sort(part["duration_us"].to_numpy(dtype=float)) * 1e-3
            share = 100 * np.arange(1, len(times) + 1) / len(times)
            axes.step([0, *times], [0, *share], where="post", color=color, label=str(name))
        axes.set_xlabel("Time of a job (ms)")
        axes.set_ylabel("Jobs (%)")
        axes.set_ylim(0, 101)
        axes.set_xlim(left=0)
        axes.legend(title="workload", loc="lower right")

    return draw("jobs", "Cumulative distribution of the times of complete jobs.", (7.2, 3.0), paint)


def rate_limiters_figure(result: Result) -> Figure:
    """Rates over time of the flows whose QCN limit changed most often. Time ends at twice the last cut of any
    of them: after it, an idle flow's rate only recovers by its timer, for seconds."""
    frame = result.rate_limiters
    changes = frame.groupby(["host", "to", "flow"])
    often = changes.size().nlargest(MOST_CURVES).index.sort_values()
    curves = [changes.get_group(key) for key in often]
    elapsed = float(result.manifest["elapsed_us"]) / 1e3
    end = min(elapsed, 2 * max(_last_cut(part) for part in curves) / 1e3)

    def paint(canvas: Canvas) -> None:
        axes = canvas.subplots()
        for (host, to, flow), part, color in zip(often, curves, ramp(len(curves)), strict=True):
            time = [*(part["time_us"] / 1e3), elapsed]
            rate = [*(part["current_mbps"] / 1e3), float(part["current_mbps"].iloc[-1]) / 1e3]
            name = f"host{host}, flow {flow}" if flow >= 0 else f"host{host}, datagrams to host{to}"
            axes.step(time, rate, where="post", color=color, lw=1.1, label=name)
        axes.set_xlabel("Time (ms)")
        axes.set_ylabel("Rate (Gb/s)")
        axes.set_xlim(0, end)
        axes.set_ylim(bottom=0)
        legend_above(canvas, axes)

    flows = changes.ngroups
    caption = f"Rates of flows that QCN limits: {len(often)} of {flows}, those that changed most often"
    left_out = f"; until {end:.4g} ms, then they only recover" if end < elapsed else ""
    return draw("rate-limiters", f"{caption}{left_out}.", (7.2, 3.0), paint)


def _last_cut(part: pd.DataFrame) -> float:
    """Time of the rate's last decrease, in us; the first change of a limiter is a decrease."""
    cuts = part.loc[~(part["current_mbps"].diff() >= 0), "time_us"]
    return float(cuts.max())


def sweep_figure(sweep: Sweep) -> Figure:
    """The main metrics along the first axis, a line per combination of the others."""
    frame = sweep.frame
    first, *others = [k for k, v in sweep.axes.items() if len(v) > 1] or list(sweep.axes)
    metrics = [m for m in SHOWN if m in frame and frame[m].notna().any()][:4]
    groups = (
        [("", frame)]
        if not others
        else [
            (", ".join(f"{key} = {value}" for key, value in zip(others, values, strict=True)), part)
            for values, part in frame.groupby(others, sort=False)
        ]
    )

    def paint(canvas: Canvas) -> None:
        panels = np.ravel(canvas.subplots(1, max(len(metrics), 1), squeeze=False)).tolist()
        values = sweep.axes[first]
        numeric = all(isinstance(v, Real) for v in values)
        for axes, metric in zip(panels, metrics, strict=False):
            for (name, part), color in zip(groups, ramp(len(groups)), strict=True):
                x = part[first] if numeric else [values.index(v) for v in part[first]]
                axes.plot(x, part[metric], "o-", color=color, label=name)
            if not numeric:
                axes.set_xticks(range(len(values)), [str(v) for v in values], rotation=45, ha="right")
            axes.set_title(metric)
            axes.set_xlabel(first)
            axes.set_ylim(bottom=0)
        if others:
            panels[0].legend()

    return draw("sweep", f"{', '.join(metrics)} against {first}.", (2.6 * max(len(metrics), 2), 3.0), paint)
