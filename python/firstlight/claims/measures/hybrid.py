"""Metrics of a hybrid fabric's measured pair: its VOQ in days, and the lengths and rates that the fabric had.

The rates are those of a saturated pair: what each network carried in the time that the pair had it.
"""

from collections.abc import Callable

import pandas as pd

from firstlight.claims.measures.units import in_bytes
from firstlight.runs.days import days_of_pair
from firstlight.runs.result import Result


def voq_in_day_packets(result: Result) -> float:
    """Mean VOQ length over the second half of the pair's days, after the first burst (packets)."""
    series = result.series
    inside = pd.Series(False, index=series.index)
    for start, end in days_of_pair(result):
        inside |= (series["time_us"] >= (start + end) / 2) & (series["time_us"] < end)
    return float(series.loc[inside, "voq_packets"].mean())


def night_us(result: Result) -> float:
    """Mean length of a night."""
    return float(result.week["night_us"].mean())


def day_us(result: Result) -> float:
    """Mean length of a day."""
    return float((result.week["end_us"] - result.week["start_us"]).mean())


def circuit_rate_gbps(result: Result) -> float:
    """Rate of the circuit in the pair's days."""
    return _gbps(result, "circuit_packets", _days_us(result))


def packet_rate_gbps(result: Result) -> float:
    """Rate of the packet network outside the pair's days and the nights before them."""
    nights = float(result.week["night_us"].iloc[0]) * len(days_of_pair(result, weeks=1))
    return _gbps(result, "packet_packets", _week_us(result) - _days_us(result) - nights)


def _week_us(result: Result) -> float:
    return float(result.week["end_us"].max())


def _days_us(result: Result) -> float:
    return sum(end - start for start, end in days_of_pair(result, weeks=1))


def _gbps(result: Result, packets: str, us_in_week: float) -> float:
    weeks = float(result.manifest["measured_us"]) / _week_us(result)
    bits = 8 * in_bytes(result.manifest["spec"]["hosts"]["mtu"])
    return result.summary[packets] * bits / (weeks * us_in_week) / 1e3


MEASURES: dict[str, Callable[[Result], float]] = {
    f.__name__: f for f in (voq_in_day_packets, night_us, day_us, circuit_rate_gbps, packet_rate_gbps)
}
