"""Shows the progress of a long command and the time that is left, on standard error."""

import contextlib
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

import click
from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from firstlight.cli.console import cost_line
from firstlight.runs import cost
from firstlight.runs.grid import CHECKED
from firstlight.runs.pool import Event, Point, missing

LONG = 10.0
"""Seconds from which a run is long: its estimate is printed once it is known."""
QUIET_PERIOD = 5.0
"""Seconds between progress lines where standard error is not a terminal."""
SHOWN_FROM = 0.02
"""The share of the work after which the remaining time is shown."""


def print_line(line: str) -> None:
    """Print a line on standard error; where that cannot be written, work goes on without it."""
    with contextlib.suppress(OSError):
        click.echo(line, err=True)


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
        self._spoke = time.monotonic()
        self._first: tuple[float, float] | None = None
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
    def of_points(cls, title: str, points: Sequence[Point], store: Path) -> "Tracker":
        """A tracker of the points that have no result in ``store`` yet. Of a large sweep all points count: to
        look for every result takes long."""
        if len(points) > CHECKED:
            print_line(f"{len(points)} points; finished ones are passed over")
            return cls(title, float(len(points)), len(points))
        keys: set[str] = set()
        todo = list(missing(points, store, keys))
        before = len(keys) - len(todo)
        print_line(f"{len(points)} points, {before} of them finished before")
        return cls(title, sum(p.weight for p in todo), len(todo))

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
            print_line(f"{self.title}{counts}: {share:.0%} done{self._left(now, share)}")

    def _left(self, now: float, share: float) -> str:
        """How long the rest takes, once enough is done for an estimate: processes need time to start."""
        if self._first is None:
            self._first = now, share
        began, done = self._first
        if share - done < SHOWN_FROM or now - began < 1:
            return ""
        return f", about {(now - began) * (1 - share) / (share - done):.0f} s left"


class Forecast:
    """Estimates the cost of a long run from its first seconds, while it continues."""

    def __init__(self, tracker: Tracker) -> None:
        self._tracker = tracker
        self._watch: cost.Watch | None = cost.Watch()

    def on_part(self, part: float, packet_hops: int) -> None:
        """The run has come so far."""
        if self._watch:
            self._watch.on_part(part, packet_hops)
            if self._watch.seconds > cost.BUDGET and part > 0:
                estimate, self._watch = self._watch.estimate(), None
                if estimate.seconds > LONG:
                    self._tracker.say(f"{self._tracker.title} takes about {cost_line(estimate)}")
        self._tracker.on_fraction(part)
