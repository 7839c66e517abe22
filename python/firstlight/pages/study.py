"""Schedules for one demand by several schedulers, as a directory: ``schedule.json`` and a picture."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from firstlight import core
from firstlight.circuits.schedule import Schedule, schedule
from firstlight.errors import SpecError
from firstlight.figures.schedules import schedule_figure
from firstlight.runs.staging import Earlier

JSON = "schedule.json"
EARLIER = Earlier(JSON, "schedules", ("schedule.svg", "schedule.png"))
"""A study that may be replaced."""


@dataclass(frozen=True)
class Study:
    """Schedules for one demand with one set of parameters."""

    source: str
    """The file of the demand."""
    frame: dict[str, str]
    """The parameters, keywords of :func:`firstlight.schedule`: week, night, least day and rates."""
    schedules: list[Schedule]
    """The schedules, one or more."""
    refused: dict[str, str]
    """Schedulers that have no schedule for this demand and these parameters, and why."""

    @classmethod
    def of(
        cls,
        demand: pd.DataFrame,
        names: Iterable[str],
        *,
        source: str,
        frame: Mapping[str, str],
        lenient: bool,
    ) -> "Study":
        """The schedules of the schedulers ``names``. If ``lenient``, a scheduler without a schedule is listed
        in ``refused``, as long as another one has a schedule. Raises :class:`SpecError`."""
        schedules: list[Schedule] = []
        refused: dict[str, str] = {}
        for name in names:
            try:
                schedules.append(schedule(demand, name, **frame))
            except SpecError as e:
                refused[name] = str(e)
        if refused and not (lenient and schedules):
            reasons = dict.fromkeys(refused.values())
            raise SpecError("\n".join(f"{source}: {reason}" for reason in reasons))
        return cls(source, dict(frame), schedules, refused)

    def as_dict(self) -> dict[str, Any]:
        """The study as ``schedule.json`` has it."""
        first = self.schedules[0]
        return {
            "version": core.version(),
            "source": self.source,
            "frame": self.frame,
            "racks": list(first.racks),
            "demand": first.demand.tolist(),
            "schedules": [one.as_dict() for one in self.schedules],
            "refused": self.refused,
        }

    def write(self, directory: Path) -> None:
        """Write ``schedule.json``, ``schedule.svg`` and ``schedule.png``."""
        (directory / JSON).write_text(json.dumps(self.as_dict()) + "\n", encoding="utf-8")
        schedule_figure(self.schedules).save(directory)
