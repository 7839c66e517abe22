"""Shows the progress of a long command and the time that is left, on standard error."""

import sys
import time
from collections.abc import Sequence
from types import TracebackType

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from firstlight.runs.pool import Event, Point

QUIET_PERIOD = 5.0
"""Seconds between progress lines where standard error is not a terminal."""


class Tracker:
    """Shows a bar on a terminal, else a line every few seconds. Points count by their weight, about what they
    cost."""

    def __init__(self, title: str, total: float = 1.0, count: int = 0) -> None:
        self.title = title
        self.total = max(total, 1e-9)
        self.count = count
        self.finished = 0
        self._running: dict[str, float] = {}
        self._complete = 0.0
        self._started = time.monotonic()
        self._spoke = self._started
        console = Console(stderr=True)
        self._bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task(title, total=self.total)

    @classmethod
    def of_points(cls, title: str, points: Sequence[Point]) -> "Tracker":
        """A tracker of the points that are still to be run."""
        return cls(title, sum(p.weight for p in points), len(points))

    def __enter__(self) -> "Tracker":
        self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: BaseException | TracebackType | None) -> None:
        self._bar.stop()

    def on_point(self, point: Point, event: Event, fraction: float) -> None:
        """Listener of :func:`firstlight.runs.pool.run_all`."""
        if event == "done":
            self._running.pop(point.label, None)
            self._complete += point.weight
            self.finished += 1
        else:
            self._running[point.label] = point.weight * fraction
        self._show(self._complete + sum(self._running.values()))

    def on_fraction(self, fraction: float) -> None:
        """Listener of a single run."""
        self._show(fraction * self.total)

    def say(self, line: str) -> None:
        """Print a line above the bar."""
        self._bar.console.print(line, highlight=False, markup=False, soft_wrap=True)

    def _show(self, work: float) -> None:
        counts = f"  {self.finished}/{self.count} points" if self.count else ""
        self._bar.update(self._task, completed=work, description=self.title + counts)
        if self._bar.disable and (now := time.monotonic()) - self._spoke >= QUIET_PERIOD:
            self._spoke = now
            share = min(work / self.total, 1.0)
            left = (now - self._started) * (1 - share) / max(share, 1e-3)
            print(
                f"{self.title}{counts}: {share:.0%} done, about {left:.0f} s left",
                file=sys.stderr,
                flush=True,
            )
