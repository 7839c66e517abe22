"""Which causes make the slow flows slow, and which the fast ones: accounts by band of completion times."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.figure import Figure as Canvas

from firstlight.figures.style import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    SKY,
    VERMILION,
    Figure,
    draw,
    legend_above,
)
from firstlight.runs import seeds
from firstlight.runs.account import choice, duration
from firstlight.runs.result import Result
from firstlight.runs.sweep import Sweep

BANDS = ((0.0, 0.5), (0.5, 0.9), (0.9, 0.99), (0.99, 1.0))
"""Bands of completion times, as parts of all flows; each contains its upper end."""
MOST_BARS = 20
"""Points of a sweep whose causes are shown, at most."""
MOST_FLOWS = 2**32
"""More flows than a run has."""
COLORS = (VERMILION, ORANGE, BLUE, SKY, GREEN, PURPLE)
"""Colours of the causes that have most of the time; all others are one, in grey."""


@dataclass(frozen=True)
class Band:
    """The flows whose completion times are in one band."""

    name: str
    flows: int
    mean_ps: float
    shares: pd.Series
    """The part of their time that each cause has, 0 to 1, by cause."""


def bands(result: Result) -> list[Band]:
    """The bands that have flows, from the fastest flows to the slowest, by rank."""
    return bands_of(result.table("account"))


def bands_of(rows: pd.DataFrame) -> list[Band]:
    """The bands of the flows of a table ``account``."""
    times = rows.groupby("flow")["time_ps"].sum().sort_values(kind="stable")
    part = np.arange(1, len(times) + 1) / len(times)
    found = []
    for low, high in BANDS:
        own = times[(part > low) & (part <= high)]
        if own.empty:
            continue
        causes = rows[rows["flow"].isin(own.index)].groupby("cause")["time_ps"].sum()
        name = f"slowest {100 - 100 * low:.0f} %" if high == 1 else f"{100 * low:.0f} to {100 * high:.0f} %"
        found.append(Band(name, len(own), float(own.mean()), causes / causes.sum()))
    return found


def has_account(result: Result) -> bool:
    """Whether a flow of the result has an account."""
    return "account" in result.tables and len(result.table("account")) > 0


def account_figure(result: Result, hosts: str = "") -> Figure:
    """The causes of the flows' time as stacked bars, a bar for each band of completion times. ``hosts`` says
    whose, where two runs are compared."""
    caption = "What took the time of fast flows and of slow ones: causes by band of completion times."
    if choice(result):
        caption += f" Of the flows that measure.account = {choice(result)} chooses."
    if hosts:
        caption = f"{hosts} hosts. {caption}"
    bars = [(_name(band), band.shares) for band in bands(result)]
    return _stacked(f"account_{hosts.lower()}" if hosts else "account", caption, bars)


def first_points(sweep: Sweep) -> list[tuple[str, Result]]:
    """The name and the result of each run of a sweep's first points. The seeds of a point have one name."""
    axes = [axis for axis, values in sweep.axes.items() if axis != seeds.KEY and len(values) > 1]
    names = [", ".join(f"{axis} = {setting[axis]}" for axis in axes) for setting in sweep.settings]
    first = list(dict.fromkeys(names))[:MOST_BARS]
    return [(name, sweep.results[number]) for number, name in enumerate(names) if name in first]


def sweep_account_figure(runs: Sequence[tuple[str, Result]], of: int) -> Figure:
    """The causes of the flows' time at points of a sweep that has so many: a bar for the faster half of a
    point's flows, and one for the slowest. The flows of all seeds of a point, which have one name, are
    together."""
    points: dict[str, list[pd.DataFrame]] = {}
    for number, (name, result) in enumerate(runs):
        rows = result.table("account")
        points.setdefault(name, []).append(rows.assign(flow=rows["flow"] + number * MOST_FLOWS))
    bars = []
    for name, tables in points.items():
        first, *others = bands_of(pd.concat(tables))
        lead = f"{name}\n" if name else ""
        bars += [(lead + _name(band), band.shares) for band in (first, *others[-1:])]
    caption = "What took the time of the faster half of the flows, and of the slowest ones, at each point."
    if len(points) < of:
        caption += f" {len(points)} of {of} points."
    return _stacked("account", caption, bars)


def _name(band: Band) -> str:
    flows = "1 flow" if band.flows == 1 else f"{band.flows} flows"
    return f"{band.name}: {flows},\nmean {duration(round(band.mean_ps))}"


def _stacked(name: str, caption: str, bars: Sequence[tuple[str, pd.Series]]) -> Figure:
    """Shares of causes as bars."""
    shares = pd.DataFrame([shares for _, shares in bars]).fillna(0.0)
    most = shares.max().sort_values(ascending=False, kind="stable").index[: len(COLORS)]
    shown = [(str(cause).replace("_", " "), shares[cause], c) for cause, c in zip(most, COLORS, strict=False)]
    if len(shares.columns) > len(most):
        shown.append(("others", shares.drop(columns=most).sum(axis=1), GREY))

    def paint(canvas: Canvas) -> None:
        axes = canvas.subplots()
        left = np.zeros(len(bars))
        for cause, part, color in shown:
            axes.barh(range(len(bars)), 100 * part, left=left, height=0.72, color=color, label=cause)
            left += 100 * part.to_numpy()
        axes.set_yticks(range(len(bars)), [label for label, _ in bars])
        axes.set_ylim(len(bars) - 0.5, -0.5)
        axes.set_xlim(0, 100)
        axes.grid(axis="y", visible=False)
        axes.set_xlabel("Part of the flows' completion times (%)")
        legend_above(canvas, axes)

    lines = max(label.count("\n") for label, _ in bars)
    return draw(name, caption, (7.2, 1.4 + (0.3 + 0.2 * lines) * len(bars)), paint)
