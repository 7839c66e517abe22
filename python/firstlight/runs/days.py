"""The days of a result's measured pair."""

import pandas as pd

from firstlight.runs.result import Result


def days_of_pair(result: Result, weeks: int = 3) -> list[tuple[float, float]]:
    """Start and end (us) of each day of the measured pair, over ``weeks`` weeks from the fold's start."""
    week = result.week
    source, destination = result.manifest["spec"]["measure"]["pair"]
    length = float(week["end_us"].max())
    mine = [f"{source}->{destination}" in str(m).split() for m in week["matching"]]
    spans = week[pd.Series(mine, index=week.index)][["start_us", "end_us"]].to_numpy(dtype=float)
    return [(a + k * length, b + k * length) for k in range(weeks) for a, b in spans.tolist()]
