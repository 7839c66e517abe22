"""What a result shows of the measured pair's days and nights."""

import pandas as pd

from firstlight.runs.result import Result


def days_of_pair(result: Result, weeks: int = 3) -> list[tuple[float, float]]:
    """When the measured pair has the circuit (us), over ``weeks`` weeks from the fold's start."""
    week = result.week
    source, destination = result.manifest["spec"]["measure"]["pair"]
    length = float(week["end_us"].max())
    mine = [f"{source}->{destination}" in str(m).split() for m in week["matching"]]
    spans = week[pd.Series(mine, index=week.index)][["start_us", "end_us"]].to_numpy(dtype=float)
    return [(a + k * length, b + k * length) for k in range(weeks) for a, b in spans.tolist()]


def mean_voq_in_day(result: Result) -> float:
    """Mean VOQ length over the second half of the pair's days, when the first rush has passed (packets)."""
    series = result.series
    inside = pd.Series(False, index=series.index)
    for start, end in days_of_pair(result):
        inside |= (series["time_us"] >= (start + end) / 2) & (series["time_us"] < end)
    return float(series.loc[inside, "voq_packets"].mean())


def emulated(result: Result) -> dict[str, tuple[float, str]]:
    """Lengths of nights and days, and the rates of both networks, from what a saturated pair got through."""
    week = result.week
    spec, summary = result.manifest["spec"], result.summary
    days, length = days_of_pair(result, weeks=1), float(week["end_us"].max())
    lit = sum(end - start for start, end in days)
    dark = lit + float(week["night_us"].iloc[0]) * len(days)
    weeks = float(result.manifest["measured_us"]) / length
    bits = 8 * size_of(spec["hosts"]["mtu"])
    return {
        "night_us": (float(week["night_us"].mean()), "us"),
        "day_us": (float((week["end_us"] - week["start_us"]).mean()), "us"),
        "packet_rate_gbps": (
            summary["packet_packets"] * bits / (weeks * (length - dark)) / 1e3,
            "Gb/s",
        ),
        "circuit_rate_gbps": (summary["circuit_packets"] * bits / (weeks * lit) / 1e3, "Gb/s"),
    }


def size_of(text: str) -> float:
    """``9kB`` -> 9000.0"""
    number = text.rstrip("kMB")
    return float(number) * {"B": 1, "kB": 1e3, "MB": 1e6}[text[len(number) :]]
