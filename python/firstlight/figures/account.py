"""Which causes make the slow flows slow, and which the fast ones: accounts by band of completion times."""

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
from firstlight.runs.account import choice, duration
from firstlight.runs.result import Result

BANDS = ((0.0, 0.5), (0.5, 0.9), (0.9, 0.99), (0.99, 1.0))
"""Bands of completion times, as parts of all flows; each contains its upper end."""
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
    rows = result.table("account")
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
    found = bands(result)
    shares = pd.DataFrame({band.name: band.shares for band in found}).fillna(0.0)
    most = shares.max(axis=1).sort_values(ascending=False, kind="stable").index[: len(COLORS)]
    shown = [
        (str(cause).replace("_", " "), shares.loc[cause], color)
        for cause, color in zip(most, COLORS, strict=False)
    ]
    if len(shares) > len(most):
        shown.append(("others", shares.drop(most).sum(), GREY))

    def paint(canvas: Canvas) -> None:
        axes = canvas.subplots()
        left = np.zeros(len(found))
        for name, part, color in shown:
            axes.barh(range(len(found)), 100 * part, left=left, height=0.72, color=color, label=name)
            left += 100 * part.to_numpy()
        names = [f"{band.name}: {band.flows} flows,\nmean {duration(round(band.mean_ps))}" for band in found]
        axes.set_yticks(range(len(found)), names)
        axes.set_ylim(len(found) - 0.5, -0.5)
        axes.set_xlim(0, 100)
        axes.grid(axis="y", visible=False)
        axes.set_xlabel("Part of the flows' completion times (%)")
        axes.set_ylabel("Flows by completion time")
        legend_above(canvas, axes)

    caption = "What took the time of fast flows and of slow ones: causes by band of completion times."
    if choice(result):
        caption += f" Of the flows that measure.account = {choice(result)} chooses."
    if hosts:
        caption = f"{hosts} hosts. {caption}"
    return draw(
        f"account_{hosts.lower()}" if hosts else "account", caption, (7.2, 1.4 + 0.5 * len(found)), paint
    )
