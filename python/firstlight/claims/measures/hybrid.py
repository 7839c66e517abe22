"""Metrics of a hybrid fabric's measured pair: its VOQ in days."""

from collections.abc import Callable

import pandas as pd

from firstlight.runs.days import days_of_pair
from firstlight.runs.result import Result


def voq_whole_day_packets(result: Result) -> float:
    """Mean VOQ length over the pair's days (packets)."""
    return _voq_from(result, 0.0)


def voq_in_day_packets(result: Result) -> float:
    """Mean VOQ length over the second half of the pair's days, after the first burst (packets)."""
    return _voq_from(result, 0.5)


def _voq_from(result: Result, part: float) -> float:
    """Mean VOQ length over the pair's days from this part of each on."""
    series = result.series
    inside = pd.Series(False, index=series.index)
    for start, end in days_of_pair(result):
        begin = start + part * (end - start)
        inside |= (series["time_us"] >= begin) & (series["time_us"] < end)
    return float(series.loc[inside, "voq_packets"].mean())


MEASURES: dict[str, Callable[[Result], float]] = {
    f.__name__: f for f in (voq_whole_day_packets, voq_in_day_packets)
}
