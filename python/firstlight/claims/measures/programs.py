"""Metrics of times that programs on Linux hosts have measured.

They are computed from the tables that programs left (:mod:`firstlight.linux.rows`). A table ``blocks`` with a
column ``duration_us`` has the metrics ``blocks_p50_us``, ``blocks_p99_us`` and so on, and ``blocks_max_us``.
With columns ``start_us`` and ``bytes`` it also has ``blocks_gbps``: all bytes divided by the time from the
first start to the last end.
"""

import pandas as pd

from firstlight.numbers import quantiles
from firstlight.runs.result import Result

PERCENTILES = (1, 10, 25, 50, 75, 90, 95, 99)


def metrics(result: Result) -> dict[str, float]:
    """The metrics of all tables that programs left."""
    found: dict[str, float] = {}
    for name in result.manifest.get("program_tables", []):
        rows = result.table(name)
        if "duration_us" in rows and len(rows):
            found |= {f"{name}_{metric}": value for metric, value in _of(rows).items()}
    return found


def _of(rows: pd.DataFrame) -> dict[str, float]:
    durations = rows["duration_us"]
    values = quantiles(durations, [p / 100 for p in PERCENTILES])
    found = {f"p{p}_us": float(value) for p, value in zip(PERCENTILES, values, strict=True)}
    found["max_us"] = float(durations.max())
    if {"start_us", "bytes"} <= set(rows):
        span_us = (rows["start_us"] + durations).max() - rows["start_us"].min()
        found["gbps"] = float(rows["bytes"].sum() * 8e-3 / span_us)
    return found
