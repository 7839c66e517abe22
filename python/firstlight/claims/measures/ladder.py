"""DX's ladder (Fig. 9): the queueing delay by timestamps, and the queue itself, which grows by a packet at
each step.

The first probe's packets are a stream that fills a port; the second probe's are single packets, pings, that
join the queue. Between two pings the queue stays as it is: a step. The first and the last tenth of each step
are left out, because pings are in flight then.
"""

from math import isfinite

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from firstlight.errors import ResultError
from firstlight.runs.result import Result

WRAP = 1 << 32
MARGIN = 0.1


def delays(result: Result) -> pd.DataFrame:
    """The stream's packets: the time of sending (us), and DX's queueing delay (us), which is the skewed
    one-way delay minus its minimum."""
    packets = result.table("probe_packets")
    stream = packets[packets["probe"] == 0]
    raw = stream["received_clock_ns"].to_numpy() - stream["sent_clock_ns"].to_numpy()
    # Differences of clocks that wrap, from the first one on: they stay together, wherever they lie.
    skewed = (raw - raw[0] + WRAP // 2) % WRAP - WRAP // 2
    return pd.DataFrame(
        {
            "time_us": stream["sent_us"].to_numpy(),
            "delay_us": (skewed - skewed.min()).astype(np.float64) / 1e3,
        }
    )


def queue(result: Result) -> pd.DataFrame:
    """The watched port: time (us), and its backlog, in packets and as the time that they take on the link
    (us)."""
    samples = result.table("queue_samples")
    waiting = samples["packets"].to_numpy().astype(np.float64)
    return pd.DataFrame(
        {
            "time_us": samples["time_us"].to_numpy(),
            "packets": waiting,
            "delay_us": waiting * packet_us(result),
        }
    )


def packet_us(result: Result) -> float:
    """Time of a packet of the stream on its link: the port's busy time divided by its packets."""
    row = result.table("queues").iloc[0]
    elapsed = float(result.manifest["measured_us"])
    return float(row["utilization"]) * elapsed / float(row["packets"])


def steps(result: Result) -> pd.DataFrame:
    """One row per step: start and end (us), medians of the measured delay and of the queue (us and packets),
    standard deviation of the measured delay (us)."""
    packets = result.table("probe_packets")
    pings = np.sort(packets.loc[packets["probe"] == 1, "sent_us"].to_numpy())
    if len(pings) < 2:
        raise ResultError(f"{result!r}: a ladder needs two pings at least")
    interval = float(pings[1] - pings[0])
    measured, real = delays(result), queue(result)
    rows = []
    for start in [pings[0] - interval, *pings]:
        bounds = (start + MARGIN * interval, start + (1 - MARGIN) * interval)
        mine, true = (_between(frame, *bounds) for frame in (measured, real))
        rows.append(
            {
                "start_us": float(start),
                "end_us": float(start) + interval,
                "measured_us": _median(mine["delay_us"].to_numpy()),
                "queue_us": _median(true["delay_us"].to_numpy()),
                "queue_packets": _median(true["packets"].to_numpy()),
                "deviation_us": float(mine["delay_us"].std(ddof=0)),
            }
        )
    return pd.DataFrame(rows)


def _between(frame: pd.DataFrame, start: float, end: float) -> pd.DataFrame:
    return frame[(frame["time_us"] >= start) & (frame["time_us"] < end)]


def _median(values: NDArray[np.float64]) -> float:
    return float(np.median(values)) if len(values) else float("nan")


def metrics(result: Result) -> dict[str, float]:
    """The ladder's metrics; none without two probes whose packets were recorded and a queue that was sampled.

    ``ladder_step_us`` and ``ladder_step_packets``: mean step that a ping adds, measured and at the port.
    ``ladder_step_median_us``: median step. ``ladder_error_us``: mean absolute difference of measured delay
    and queue over the steps. ``ladder_noise_us``: mean deviation within a step.
    """
    if not {"probe_packets", "queue_samples"} <= set(result.tables) or len(result.table("probes")) != 2:
        return {}
    rows = steps(result)
    found = {
        "ladder_step_us": rows["measured_us"].diff().mean(),
        "ladder_step_median_us": rows["measured_us"].diff().median(),
        "ladder_step_packets": rows["queue_packets"].diff().mean(),
        "ladder_error_us": (rows["measured_us"] - rows["queue_us"]).abs().mean(),
        "ladder_noise_us": rows["deviation_us"].mean(),
    }
    return {name: float(value) for name, value in found.items() if isfinite(value)}
