"""Runs many points on all cores, in a few worker processes.

Workers are plain child processes that exchange JSON lines (:mod:`firstlight.runs.worker`). Nothing of the
caller's program is imported again, so this works from a script, a notebook or a test. Results are stored
under the run's key; a finished point is not run again.
"""

import contextlib
import functools
import itertools
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from queue import Queue
from typing import Any, Literal

from firstlight import errors
from firstlight.core import PATIENCE, Spec, check_patience
from firstlight.runs import leftovers
from firstlight.runs.result import Result, is_sound, load
from firstlight.runs.run import Surroundings, key_of, surroundings
from firstlight.runs.staging import unwritable

Event = Literal["progress", "done"]
Listener = Callable[["Point", Event, float], None]
AHEAD = 2
"""Points that a worker is given at a time: it begins the next without waiting for its parent."""


@dataclass(frozen=True)
class Point:
    """One run: its experiment, its label, and its share of the whole work."""

    spec: Spec
    label: str
    weight: float = 1.0
    surroundings: Surroundings | None = None
    """What decides the result besides the experiment, where that is known."""

    @functools.cached_property
    def known(self) -> Surroundings:
        """What decides the result besides the experiment. Raises :class:`SpecError` with the point's label
        for a wrong experiment."""
        if self.surroundings is not None:
            return self.surroundings
        try:
            return surroundings(self.spec.check())
        except errors.SpecError as e:
            raise errors.SpecError(f"{self.label}: {e}") from None

    @functools.cached_property
    def key(self) -> str:
        """Identity of the run."""
        return key_of(self.spec, self.known)

    def target(self, store: Path) -> Path:
        """The result's directory in ``store``."""
        return store / self.key


def checked(points: Sequence[Point]) -> list[Point]:
    """The points, each checked by the core; raises :class:`SpecError` with the label of the first wrong
    one."""
    for point in points:
        _ = point.known
    return list(points)


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def missing(points: Iterable[Point], store: Path) -> Iterator[Point]:
    """The points that have no sound result in ``store`` yet, each once."""
    seen: set[str] = set()
    for point in points:
        if point.key not in seen:
            seen.add(point.key)
            if not is_sound(point.target(store)):
                yield point


def pending(points: Iterable[Point], store: Path) -> list[Point]:
    """The points that have no sound result in ``store`` yet, each once."""
    return list(missing(points, store))


@dataclass(frozen=True)
class Means:
    """How points are run: by processes of this machine, or by an executor."""

    jobs: int | None = None
    """Processes that run side by side; ``None``: one for each core."""
    executor: Executor | None = None
    """Anything with the protocol of :mod:`concurrent.futures`, such as Dask's ``Client.get_executor()``."""
    listener: Listener | None = None
    patience: float = PATIENCE
    """Seconds for which the virtual time of Linux hosts may stand still."""
    capture: bool = False

    def __post_init__(self) -> None:
        check_patience(self.patience)
        if self.jobs is not None and self.jobs < 1:
            raise errors.PlanError(f"jobs = {self.jobs}: write a number of processes from 1")
        if self.jobs is not None and self.executor is not None:
            raise errors.PlanError("jobs and executor: an executor has its own workers; leave jobs out")


def run_missing(points: Iterable[Point], store: Path, means: Means) -> None:
    """Run the points that have no result in ``store`` yet.

    On an error or Ctrl-C all workers are killed and partly written results removed; finished points stay.
    """
    try:
        store.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise unwritable(store, e) from None
    leftovers.clear(store)
    todo = missing(points, store)
    first = list(itertools.islice(todo, means.jobs or cores()))
    if not first:
        return
    every = itertools.chain(first, todo)
    if means.executor is None:
        _Workers(every, store, means).run(len(first))
    else:
        from firstlight.runs.remote import Remote

        Remote(means.executor, every, store, means).run()


def run_all(points: Sequence[Point], store: Path, means: Means | None = None) -> list[Result]:
    """Results of ``points``, in their order; points that have a result in ``store`` are not run again."""
    run_missing(points, store, means or Means())
    return [load(p.target(store)) for p in points]


class _Workers:
    """The workers of one call, and the points that they share."""

    def __init__(self, todo: Iterator[Point], store: Path, means: Means) -> None:
        self.todo = todo
        self.store = store
        self.means = means
        self.inbox: Queue[tuple[_Worker, dict[str, Any]]] = Queue()

    def run(self, jobs: int) -> None:
        workers = [_Worker(self.inbox) for _ in range(jobs)]
        try:
            for _ in range(AHEAD):
                for worker in workers:
                    self.feed(worker)
            while any(w.points for w in workers):
                self.handle(*self.inbox.get())
        finally:
            for worker in workers:
                worker.end()
            for worker in workers:
                worker.close()
            leftovers.clear(self.store)

    def feed(self, worker: "_Worker") -> None:
        """Give ``worker`` the next point, if there is one."""
        if point := next(self.todo, None):
            worker.start(point, self.store, self.means)

    def handle(self, worker: "_Worker", message: dict[str, Any]) -> None:
        if "number" not in message:  # the process has ended
            if worker.points:
                raise errors.RunError(f"{next(iter(worker.points.values())).label}: {message['error']}")
            return
        point = worker.points[message["number"]]
        if "progress" in message:
            self.report(point, "progress", float(message["progress"]))
        elif "done" in message:
            del worker.points[message["number"]]
            self.report(point, "done", 1.0)
            self.feed(worker)
        else:
            kind = getattr(errors, str(message.get("kind")), errors.RunError)
            raise kind(f"{point.label}: {message['error']}")

    def report(self, point: Point, event: Event, fraction: float) -> None:
        if self.means.listener:
            self.means.listener(point, event, fraction)


class _Worker:
    """One child process, and the thread that reads its messages."""

    def __init__(self, inbox: "Queue[tuple[_Worker, dict[str, Any]]]") -> None:
        self.points: dict[int, Point] = {}
        self._numbers = itertools.count()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "firstlight.runs.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # a terminal's Ctrl-C reaches the parent only
        )
        self.listener = threading.Thread(target=self._listen, args=(inbox,), daemon=True)
        self.listener.start()

    def _listen(self, inbox: "Queue[tuple[_Worker, dict[str, Any]]]") -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            inbox.put((self, json.loads(line)))
        inbox.put((self, {"error": f"the worker process ended (exit code {self.process.wait()})"}))

    def start(self, point: Point, store: Path, means: Means) -> None:
        """Send a point to the process."""
        spec = point.spec
        number = next(self._numbers)
        self.points[number] = point
        task = {
            "number": number,
            "text": spec.text,
            "path": spec.path,
            "overrides": spec.overrides,
            "sweep": spec.sweep,
            "target": str(point.target(store)),
            "capture": means.capture,
            "patience": means.patience,
        }
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it has died: its listener says so
            self.process.stdin.write(json.dumps(task) + "\n")
            self.process.stdin.flush()

    def end(self) -> None:
        """Kill the process."""
        self.points.clear()
        self.process.kill()

    def close(self) -> None:
        """Wait for the process's end, and close its streams."""
        self.process.wait()
        self.listener.join()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()
