"""Pauses of one run on a lossless fabric: which ports, when, how long, and how much of it as victims."""

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure as Canvas

from firstlight.figures.style import SKY, VERMILION, Figure, draw
from firstlight.runs.result import Result

MOST_PORTS = 24
BINS = 120


def pauses_figure(result: Result) -> Figure:
    """The ports (and classes) that were paused longest. On the left, the share of each moment for which each
    was paused, as far as single pauses were recorded; on the right, how long in total, with the part as
    victim."""
    pauses = result.table("pauses")
    paused = pauses[pauses["pauses"] > 0].sort_values("paused_us", ascending=False, kind="stable")
    shown = paused.head(MOST_PORTS)
    events = result.table("pause_events")
    begun = int(events["paused"].sum())
    whole = begun >= int(pauses["pauses"].sum())
    end = float(events["at_us"].max() if begun else 0.0)

    def paint(canvas: Canvas) -> None:
        if end > 0:
            left, right = canvas.subplots(1, 2, sharey=True, width_ratios=(3, 1.3))
            _over_time(canvas, left, shown, events, end)
            _totals(right, shown)
        else:
            left = canvas.subplots()
            _totals(left, shown)
        several = pauses["class"].nunique() > 1
        names = [
            f"{n}, class {c}" if several else n for n, c in zip(shown["name"], shown["class"], strict=True)
        ]
        left.set_yticks(np.arange(len(shown)) + 0.5, names, fontsize=7)
        left.set_ylim(len(shown), 0)

    until = "the last one's end" if whole else f"the last of {begun:,} that were recorded (pfc.events)"
    over_time = (
        f"Left: the part of the time for which each was paused, until {until}. Right: h" if end > 0 else "H"
    )
    caption = (
        f"Pauses: {len(shown)} of {len(paused)} ports that were paused, the longest first. {over_time}ow "
        "long in all, and how much of it the first packet was bound for an idle port (victim)."
    )
    return draw("pauses", caption, (7.2, 1.2 + 0.17 * len(shown)), paint)


def _over_time(canvas: Canvas, axes: Axes, shown: pd.DataFrame, events: pd.DataFrame, end: float) -> None:
    edges = np.linspace(0.0, end, BINS + 1)
    recorded = {row: part for row, part in events.groupby(["name", "class"], sort=False)}
    rows = zip(shown["name"], shown["class"], strict=True)
    shares = [paused_share(recorded.get(row, events.head(0)), edges) for row in rows]
    cells = np.ma.masked_equal(100 * np.array(shares), 0.0)
    places = np.arange(len(shown) + 1)
    mesh = axes.pcolormesh(edges / 1e3, places, cells, norm=Normalize(0, 100), cmap="YlOrRd")
    canvas.colorbar(mesh, ax=axes, label="Paused (% of the time)", location="top", aspect=50, pad=0.02)
    axes.set_xlabel("Time (ms)")
    axes.grid(visible=False)


def paused_share(events: pd.DataFrame, edges: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The share of the time between two ``edges`` (us) for which a port was paused. A pause without an end in
    ``events`` lasts until the last edge."""
    begins = events.loc[events["paused"], "at_us"].to_numpy(dtype=float)
    ends = events.loc[~events["paused"], "at_us"].to_numpy(dtype=float)
    ends = np.append(ends, edges[-1])[: len(begins)]
    so_far = np.concatenate([[0.0], np.cumsum(ends - begins)])
    moments = np.concatenate([[0.0], np.column_stack([begins, ends]).ravel()])
    sums = np.concatenate([[0.0], np.column_stack([so_far[:-1], so_far[1:]]).ravel()])
    return np.asarray(np.diff(np.interp(edges, moments, sums)) / np.diff(edges))


def _totals(axes: Axes, shown: pd.DataFrame) -> None:
    places = np.arange(len(shown)) + 0.5
    victim = shown["victim_us"].fillna(0.0)
    axes.barh(places, shown["paused_us"] / 1e3, height=0.7, color=SKY, label="paused")
    axes.barh(places, victim / 1e3, height=0.7, color=VERMILION, label="victim")
    axes.set_xlabel("Paused (ms)")
    axes.margins(x=0.02)
    axes.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2, columnspacing=1.0, handlelength=1.2)
