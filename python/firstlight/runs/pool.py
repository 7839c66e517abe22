"""Runs many points on all cores, in a few worker processes.

Workers are processes that exchange JSON lines (:mod:`firstlight.runs.worker`). Nothing of the caller's
program is imported again, so this works from a script, a notebook or a test. Results are stored under the
run's key; a finished point is not run again.
"""

import contextlib
import functools
import itertools
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from queue import Queue
from typing import Any, Literal, TypeVar

from firstlight import errors
from firstlight.core import PATIENCE, Spec, check_patience
from firstlight.dilated.machines import check_one_run
from firstlight.runs import forkserver, leftovers
from firstlight.runs.result import Results, is_sound
from firstlight.runs.run import Surroundings, key_of, surroundings
from firstlight.runs.staging import unwritable
from firstlight.runs.worker import as_text, of_text

Event = Literal["progress", "done"]
T = TypeVar("T")
R = TypeVar("R")
Listener = Callable[["Point", Event, float], None]
SHORT = 0.1
"""Seconds of a point after which a worker is given two at a time: it begins the next without waiting."""


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


def missing(points: Iterable[Point], store: Path, seen: set[str] | None = None) -> Iterator[Point]:
    """The points that have no sound result in ``store`` yet, each once; ``seen`` gets the keys of all."""
    seen = set() if seen is None else seen
    there = set(os.listdir(store)) if store.is_dir() else set()
    for point in points:
        if point.key not in seen:
            seen.add(point.key)
            if point.key not in there or not is_sound(point.target(store)):
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
    rows: dict[str, Mapping[str, Any]] | None = None
    """Gets the rows of results (:attr:`Result.row`) by the points' keys, of those that processes of this
    machine have run."""

    def __post_init__(self) -> None:
        check_patience(self.patience)
        if self.jobs is not None and (isinstance(self.jobs, bool) or not hasattr(self.jobs, "__index__")):
            raise errors.PlanError(f"jobs = {self.jobs!r}: write a number of processes from 1")
        if self.jobs is not None and self.jobs < 1:
            raise errors.PlanError(f"jobs = {self.jobs}: write a number of processes from 1")
        if self.jobs is not None and self.executor is not None:
            raise errors.PlanError("jobs and executor: an executor has its own workers; leave jobs out")
        if self.executor is not None and not hasattr(self.executor, "submit"):
            known = "give one with the protocol of concurrent.futures, such as Dask's client.get_executor()"
            raise errors.PlanError(f"executor = {self.executor!r}: {known}")


def prepare() -> None:
    """Start what starts workers, which takes a moment, while points are planned."""
    forkserver.prepare()


def run_missing(points: Iterable[Point], store: Path, means: Means) -> None:
    """Run the points that have no result in ``store`` yet.

    On an error or Ctrl-C all workers are killed and partly written results removed; finished points stay.
    """
    check_one_run()
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


def run_all(points: Sequence[Point], store: Path, means: Means | None = None) -> Results:
    """Results of ``points``, in their order; points that have a result in ``store`` are not run again."""
    run_missing(points, store, means or Means())
    return Results([p.target(store) for p in points])


def mapped(function: Callable[[T], R], items: Sequence[T], jobs: int | None = None) -> list[R]:
    """``function`` of each item, in their order, by worker processes; ``function``, items and what it returns
    are pickled. Raises what ``function`` raises, if it is an error of Firstlight, else :class:`RunError`."""
    inbox: Queue[tuple[_Worker, dict[str, Any]]] = Queue()
    todo = iter(enumerate(items))
    found: dict[int, R] = {}
    workers: list[_Worker] = []
    try:
        for number, item in itertools.islice(todo, jobs or cores()):
            workers.append(_Worker(inbox))
            workers[-1].call(number, function, item)
        while len(found) < len(items):
            worker, message = inbox.get()
            if "error" in message:
                raise getattr(errors, str(message.get("kind")), errors.RunError)(message["error"])
            found[message["number"]] = of_text(message["returned"])
            for number, item in itertools.islice(todo, 1):
                worker.call(number, function, item)
    finally:
        _end(workers)
    return [found[number] for number in range(len(items))]


def _end(workers: "Sequence[_Worker]") -> None:
    for worker in workers:  # they exit side by side
        worker.leave()
    for worker in workers:
        worker.end()


class _Workers:
    """The workers of one call, and the points that they share."""

    def __init__(self, todo: Iterator[Point], store: Path, means: Means) -> None:
        self.todo = todo
        self.store = store
        self.means = means
        self.inbox: Queue[tuple[_Worker, dict[str, Any]]] = Queue()

    def run(self, jobs: int) -> None:
        workers: list[_Worker] = []
        try:
            for _ in range(jobs):
                workers.append(_Worker(self.inbox))
                self.feed(workers[-1])
            while any(w.points for w in workers):
                self.handle(*self.inbox.get())
        finally:
            _end(workers)
            leftovers.clear(self.store)

    def feed(self, worker: "_Worker") -> None:
        """Give ``worker`` the next point, if there is one."""
        while worker.wants_more() and (point := next(self.todo, None)):
            worker.start(point, self.store, self.means)

    def handle(self, worker: "_Worker", message: dict[str, Any]) -> None:
        if "done" in message:
            for number, row in message["done"]:
                point = worker.points.pop(number)
                if row is not None and self.means.rows is not None:
                    self.means.rows[point.key] = {sys.intern(name): value for name, value in row.items()}
                self.report(point, "done", 1.0)
            return
        if "number" not in message:  # the process has ended
            if worker.points:
                raise errors.RunError(f"{next(iter(worker.points.values())).label}: {message['error']}")
            return
        point = worker.points[message["number"]]
        if "progress" in message:
            self.report(point, "progress", float(message["progress"]))
        elif "computed" in message:
            worker.has_computed()
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
        """Points that are not stored yet."""
        self._numbers = itertools.count()
        self._waiting = 0
        self._wanted = 1
        self._changed = time.monotonic()
        self.process = forkserver.Child()
        self.listener = threading.Thread(target=self._listen, args=(inbox,), daemon=True)
        self.listener.start()

    def _listen(self, inbox: "Queue[tuple[_Worker, dict[str, Any]]]") -> None:
        for line in self.process.stdout:
            inbox.put((self, json.loads(line)))
        try:
            error = f"the worker process ended (exit code {self.process.end()})"
        except errors.RunError as e:
            error = str(e)
        inbox.put((self, {"error": error}))

    def wants_more(self) -> bool:
        """Whether the process has fewer points to compute than it should have."""
        return self._waiting < self._wanted

    def has_computed(self) -> None:
        """Count a point that the process has computed and is now storing."""
        now = time.monotonic()
        self._wanted = 2 if now - self._changed < SHORT else 1
        self._changed = now
        self._waiting -= 1

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
            "row": means.rows is not None,
        }
        self._waiting += 1
        self._send(task)

    def call(self, number: int, function: Callable[[T], Any], item: T) -> None:
        """Have the process call ``function`` with ``item``."""
        self._send({"number": number, "call": as_text((function, item))})

    def _send(self, task: dict[str, Any]) -> None:
        with contextlib.suppress(BrokenPipeError):  # it has died: its listener says so
            self.process.stdin.write(json.dumps(task) + "\n")
            self.process.stdin.flush()

    def leave(self) -> None:
        """Close the process's input, at whose end it exits."""
        self.points.clear()
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()

    def end(self) -> None:
        """Kill the process if it still runs, wait for its end and close its output."""
        with contextlib.suppress(errors.RunError):  # without its server it ends as its input closes
            self.process.end()
        self.listener.join()
        self.process.stdout.close()
