"""Simulated and Linux hosts, overlaid."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from firstlight.errors import FirstlightError
from firstlight.figures.style import BLUE, VERMILION, Figure, draw, legend_above, shade_days
from firstlight.runs.compare import Comparison
from firstlight.runs.days import days_of_pair
from firstlight.runs.divergence import Distribution, completions, latencies
from firstlight.runs.result import UTILIZATION, Result

LOOKS: dict[str, dict[str, Any]] = {
    "simulated hosts": {"color": BLUE},
    "Linux hosts": {"color": VERMILION, "ls": "--"},
}
Pair = Sequence[tuple[str, Result]]


def figures(comparison: Comparison) -> list[Figure]:
    """All figures whose tables both runs have."""
    both: Pair = list(zip(LOOKS, (comparison.simulated, comparison.linux), strict=True))
    drawn = []
    if all(UTILIZATION in r.summary for _, r in both):
        drawn.append(_utilization(both))
    if all("latency" in r.tables and len(r.latency) for _, r in both):
        drawn.append(_latency(both))
    if all("series" in r.tables and len(r.series) for _, r in both):
        drawn.append(_series(both))
    if all(len(completions(r)[0]) for _, r in both):
        drawn.append(_completion(both))
    return drawn


def _utilization(both: Pair) -> Figure:
    def paint(canvas: Canvas) -> None:
        axes = canvas.subplots()
        for i, (name, result) in enumerate(both):
            value = result.summary[UTILIZATION]
            axes.barh(i, value, 0.6, color=LOOKS[name]["color"])
            axes.annotate(f"{value:.1f}", (value, i), (4, 0), textcoords="offset points", va="center")
        axes.set_yticks(range(len(both)), [name for name, _ in both])
        axes.invert_yaxis()
        axes.grid(axis="y", visible=False)
        axes.set_xlim(0, 108)
        axes.set_xlabel("Circuit utilization (%)")

    caption = "Share of the circuit's capacity that carried the pair's TCP payload."
    return draw("compare-utilization", caption, (7.2, 1.5), paint)


def _latency(both: Pair) -> Figure:
    networks = [
        None,
        *(n for n in ("circuit", "packet") if all(n in set(r.latency["network"]) for _, r in both)),
    ]

    def paint(canvas: Canvas) -> None:
        panels: list[Axes] = np.ravel(canvas.subplots(1, len(networks), sharey=True, squeeze=False)).tolist()
        for axes, network in zip(panels, networks, strict=True):
            for name, result in both:
                _steps(axes, latencies(result.latency, network), name)
            axes.set_title(
                {None: "all packets", "circuit": "over the circuit"}.get(network, "over the packet network")
            )
            axes.set_ylim(0, 101)
            axes.set_xlim(left=0)
        panels[0].set_ylabel("Packets (%)")
        canvas.supxlabel("Latency from VOQ arrival to delivery after the switch (us)", fontsize=9)
        legend_above(canvas, panels[0])

    caption = "Cumulative distribution of packet latency, by the network that carried it."
    return draw("compare-latency", caption, (7.2, 3.0), paint)


def _series(both: Pair) -> Figure:
    try:
        days = days_of_pair(both[0][1])
    except (FirstlightError, KeyError):
        days = []

    def paint(canvas: Canvas) -> None:
        top, bottom = canvas.subplots(2, 1, sharex=True, height_ratios=(3, 1.8))
        for name, result in both:
            series = result.series
            top.plot(series["time_us"], series["sequence_bytes"] / 1e3, label=name, **LOOKS[name])
            bottom.plot(series["time_us"], series["voq_packets"], **{**LOOKS[name], "lw": 1.2})
        for axes in (top, bottom):
            shade_days(axes, days)
            axes.set_ylim(bottom=0)
        bottom.set_xlim(0, float(both[0][1].series["time_us"].max()))
        top.set_ylabel("Expected TCP sequence\nnumber per flow (KB)")
        bottom.set_ylabel("VOQ (packets)")
        bottom.set_xlabel("Time (us)")
        legend_above(canvas, top)

    caption = "Mean in-order sequence number per flow and VOQ length of the measured pair; days shaded."
    return draw("compare-series", caption, (7.2, 4.2), paint)


def _completion(both: Pair) -> Figure:
    def paint(canvas: Canvas) -> None:
        axes = canvas.subplots()
        for name, result in both:
            values, shares = completions(result)
            _steps(axes, (values / 1e3, shares), name)
        axes.set_ylim(0, 101)
        axes.set_xlim(left=0)
        axes.set_ylabel("Flows (%)")
        axes.set_xlabel("Flow completion time (ms)")
        legend_above(canvas, axes)

    caption = "Cumulative distribution of flow completion time, of the flows that completed."
    return draw("compare-completion", caption, (7.2, 3.0), paint)


def _steps(axes: Axes, of: Distribution, name: str) -> None:
    values, shares = of
    share = 100 * np.concatenate([[0.0], np.cumsum(shares)])
    axes.step(np.concatenate([values[:1], values]), share, where="post", label=name, **LOOKS[name])
