"""Computes a circuit scheduler's week for a demand, from Python.

>>> import firstlight as fl
>>> ring = [[0, 50_000, 100], [100, 0, 50_000], [50_000, 100, 0]]  # bytes
>>> s = fl.schedule(ring, "strobe", week="100us", night="10us", least_day="20us")
>>> [day.length_us for day in s.days], s.share_served
([40.0, 40.0], 1.0)

Schedulers are pure functions in the core: one demand and one frame give one schedule.
"""

import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from firstlight import _core
from firstlight.circuits.demand import Bytes, demand_of
from firstlight.errors import SpecError

CALLS = 11
"""How often the scheduler is called, for the median of its run time."""
ENOUGH_S = 1.0
"""Seconds after which no further call begins."""
PS_PER_US = 1e6
PS_PER_BYTE_AT_1_BPS = 8 * 10**12


@dataclass(frozen=True, eq=False)
class Day:
    """One day of a schedule and the night before it."""

    begins_ps: int
    """Start of the day after its night, from the start of the week."""
    night_ps: int
    length_ps: int
    destinations: NDArray[np.int64]
    """The destination rack of each rack, -1 where a rack is idle."""
    served_bytes: int
    """Bytes of the demand that this day carries, of all racks together."""

    @property
    def begins_us(self) -> float:
        """When the day begins, from the start of the week (us)."""
        return self.begins_ps / PS_PER_US

    @property
    def length_us(self) -> float:
        """Length of the day (us)."""
        return self.length_ps / PS_PER_US

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Source and destination rack of each circuit."""
        return [(source, int(to)) for source, to in enumerate(self.destinations) if to >= 0]


@dataclass(frozen=True, eq=False)
class Schedule:
    """The week that a scheduler computed for a demand."""

    scheduler: str
    racks: tuple[str, ...]
    """Names of the racks, in the order of rows and columns."""
    demand: Bytes
    """Bytes from each rack (row) to each rack (column)."""
    served: Bytes
    """Bytes of the demand that circuits carry in one week, if all bytes wait at the week's start."""
    days: tuple[Day, ...]
    run_time_ns: int
    """Run time of the scheduler on this machine, the median of several calls."""
    circuit_bps: int
    packet_bps: int

    @property
    def week_ps(self) -> int:
        """Length of the week: all nights and days."""
        return sum(day.night_ps + day.length_ps for day in self.days)

    @property
    def configurations(self) -> int:
        """How many days have a circuit."""
        return sum(1 for day in self.days if day.pairs)

    @property
    def share_served(self) -> float:
        """The share of the demand that circuits carry, 0 to 1; NaN without any demand."""
        total = self.demand.sum(dtype=float)
        return float(self.served.sum(dtype=float) / total) if total else float("nan")

    @property
    def duty_cycle(self) -> float:
        """The share of the week in which at least one circuit is up, 0 to 1."""
        return sum(day.length_ps for day in self.days if day.pairs) / self.week_ps

    @property
    def rack_duty(self) -> float:
        """The share of the week in which a rack has a circuit to send over, the mean of all racks, 0 to 1.
        Idle racks make it smaller than the duty cycle."""
        lit = sum(day.length_ps * len(day.pairs) for day in self.days)
        return lit / (self.week_ps * len(self.racks))

    @cached_property
    def left(self) -> Bytes:
        """Bytes of the demand that circuits do not carry."""
        return self.demand - self.served

    @property
    def busiest_left_bytes(self) -> int:
        """The most that a rack has left to send or to receive, in bytes."""
        return int(max(self.left.sum(axis=side, dtype=float).max() for side in (0, 1)))

    @property
    def packet_time_ps(self) -> int:
        """How long the packet network needs for what is left, by the busiest rack's link to it."""
        return -(-self.busiest_left_bytes * PS_PER_BYTE_AT_1_BPS // self.packet_bps)

    @property
    def packet_fits(self) -> bool:
        """Whether the packet network can carry what is left within the week. Nights and days in which a pair
        must not use it are not subtracted."""
        return self.packet_time_ps <= self.week_ps

    @property
    def calendar(self) -> pd.DataFrame:
        """One row per day: its start and length (us), its matching, the bytes that it serves."""
        columns = ["begins_us", "length_us", "matching", "served_bytes"]
        rows = [(day.begins_us, day.length_us, self.matching(day), day.served_bytes) for day in self.days]
        return pd.DataFrame(rows, columns=columns)

    def matching(self, day: Day) -> str:
        """``0>1 1>0``; ``idle`` when no circuit is up."""
        return " ".join(f"{self.racks[a]}>{self.racks[b]}" for a, b in day.pairs) or "idle"

    @property
    def summary(self) -> dict[str, Any]:
        """Measures of the schedule, by name; the share is ``None`` without any demand."""
        return {
            "scheduler": self.scheduler,
            "share_served": None if np.isnan(self.share_served) else self.share_served,
            "demand_bytes": int(self.demand.sum(dtype=float)),
            "served_bytes": sum(day.served_bytes for day in self.days),
            "busiest_left_bytes": self.busiest_left_bytes,
            "packet_time_ps": self.packet_time_ps,
            "packet_fits": self.packet_fits,
            "duty_cycle": self.duty_cycle,
            "rack_duty": self.rack_duty,
            "configurations": self.configurations,
            "run_time_ns": self.run_time_ns,
        }

    def as_dict(self) -> dict[str, Any]:
        """Summary and days as ``schedule.json`` has them."""
        days = [
            {
                "begins_ps": day.begins_ps,
                "night_ps": day.night_ps,
                "length_ps": day.length_ps,
                "destinations": [int(to) if to >= 0 else None for to in day.destinations],
                "served_bytes": day.served_bytes,
            }
            for day in self.days
        ]
        return {**self.summary, "days": days, "served": self.served.tolist()}


def schedulers() -> list[str]:
    """Names of the schedulers."""
    return _core.schedulers()


def schedule(
    demand: ArrayLike | pd.DataFrame,
    scheduler: str,
    *,
    week: str = "2ms",
    night: str = "20us",
    least_day: str = "50us",
    circuit_rate: str = "80Gbps",
    packet_rate: str = "10Gbps",
) -> Schedule:
    """The week that ``scheduler`` (one of :func:`schedulers`) computes for ``demand``.

    ``demand`` has bytes from each rack (row) to each rack (column), whole numbers with a diagonal of zeros:
    an array, nested lists, or a frame whose rows and columns are named after the racks. Nights and days fill
    the ``week`` exactly; no day is shorter than ``least_day``. ``circuit_rate`` is that of a circuit,
    ``packet_rate`` that of each rack's link to the packet network. The scheduler is called up to 11 times for
    the median of its run time.

    Raises :class:`SpecError` for a wrong demand, and where the week has no room for a schedule.
    """
    matrix, racks = demand_of(demand)
    times: list[int] = []
    until = time.monotonic() + ENOUGH_S
    while not times or (len(times) < CALLS and time.monotonic() < until):
        try:
            answer = _core.schedule(matrix, scheduler, week, night, least_day, circuit_rate, packet_rate)
        except _core.SpecError as e:
            raise SpecError(str(e)) from None
        times.append(answer["run_time_ns"])
    return Schedule(
        scheduler=scheduler,
        racks=racks,
        demand=matrix,
        served=answer["served"],
        days=tuple(_days(answer["days"], matrix, answer["circuit_bps"])),
        run_time_ns=round(statistics.median(times)),
        circuit_bps=answer["circuit_bps"],
        packet_bps=answer["packet_bps"],
    )


def _days(core: list[tuple[int, int, NDArray[np.int64]]], demand: Bytes, circuit_bps: int) -> Iterator[Day]:
    """The days with their start, and the bytes that each serves: a pair's circuits carry its demand in the
    order of days."""
    at = 0
    lit: dict[tuple[int, int], int] = {}
    for night, length, destinations in core:
        served = 0
        for source in np.flatnonzero(destinations >= 0).tolist():
            pair = (source, int(destinations[source]))
            before = lit.get(pair, 0)
            lit[pair] = before + length
            carried = [time * circuit_bps // PS_PER_BYTE_AT_1_BPS for time in (before, lit[pair])]
            first, last = (min(int(demand[pair]), volume) for volume in carried)
            served += last - first
        yield Day(at + night, night, length, destinations, served)
        at += night + length
