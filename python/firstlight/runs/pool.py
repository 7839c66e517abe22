"""Runs many points on all cores, in a few worker processes.

Workers are plain child processes that exchange JSON lines (:mod:`firstlight.runs.worker`). Nothing of the
caller's program is imported again, so this works from a script, a notebook or a test. Results are stored
under the run's key; a finished point is not run again.
"""

import contextlib
import functools
import json
import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from queue import Queue
from typing import Any, Literal

from firstlight import errors
from firstlight.core import PATIENCE, Spec, check_patience
from firstlight.runs import leftovers
from firstlight.runs.result import Result, is_sound, load
from firstlight.runs.run import Surroundings, key_of, surroundings
from firstlight.runs.staging import claim, unwritable

Event = Literal["progress", "done"]
Listener = Callable[["Point", Event, float], None]


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
        """What decides the result besides the experiment. Raises :class:`SpecError` with the point's label for
        a wrong experiment."""
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


def pending(points: Sequence[Point], store: Path) -> list[Point]:
    """The points that have no sound result in ``store`` yet, each run once."""
    unique = {p.key: p for p in points}
    return [p for p in unique.values() if not is_sound(p.target(store))]


def run_all(
    points: Sequence[Point],
    store: Path,
    *,
    jobs: int | None = None,
    listener: Listener | None = None,
    capture: bool = False,
    patience: float = PATIENCE,
    index: str = "",
    files: Sequence[str] = (),
) -> list[Result]:
    """Results of ``points``, in their order; points that have a result in ``store`` are not run again.

    With ``index`` the directory that ``store`` is in is claimed first
    (:func:`~firstlight.runs.staging.claim`), ``files`` being what else is written there.

    On an error or Ctrl-C all workers are killed and partly written results removed; finished points stay.
    """
    check_patience(patience)
    if jobs is not None and jobs < 1:
        raise errors.PlanError(f"jobs = {jobs}: write a number of processes from 1")
    try:
        if index:
            claim(store.parent, index, files)
        store.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise unwritable(store, e) from None
    todo = pending(points, store)
    if todo:
        leftovers.clear(store)
        _Workers(todo, store, capture, listener, patience).run(min(jobs or cores(), len(todo)))
    return [load(p.target(store)) for p in points]


class _Workers:
    """The workers of one call, and the points that they share."""

    def __init__(
        self, todo: list[Point], store: Path, capture: bool, listener: Listener | None, patience: float
    ) -> None:
        self.todo = deque(todo)
        self.store = store
        self.capture = capture
        self.listener = listener
        self.patience = patience
        self.inbox: Queue[tuple[_Worker, dict[str, Any]]] = Queue()

    def run(self, jobs: int) -> None:
        workers = [_Worker(self.inbox) for _ in range(jobs)]
        try:
            for worker in workers:
                self.feed(worker)
            while any(w.point for w in workers):
                self.handle(*self.inbox.get())
        finally:
            for worker in workers:
                worker.end()
            for worker in workers:
                worker.close()
            leftovers.clear(self.store)

    def feed(self, worker: "_Worker") -> None:
        """Give ``worker`` the next point, if there is one."""
        worker.point = self.todo.popleft() if self.todo else None
        if worker.point:
            worker.start(worker.point, self.store, self.capture, self.patience)

    def handle(self, worker: "_Worker", message: dict[str, Any]) -> None:
        point = worker.point
        if point is None:
            return
        if "progress" in message:
            self.report(point, "progress", float(message["progress"]))
        elif "done" in message:
            self.report(point, "done", 1.0)
            self.feed(worker)
        else:
            kind = getattr(errors, str(message.get("kind")), errors.RunError)
            raise kind(f"{point.label}: {message['error']}")

    def report(self, point: Point, event: Event, fraction: float) -> None:
        if self.listener:
            self.listener(point, event, fraction)


class _Worker:
    """One child process, and the thread that reads its messages."""

    def __init__(self, inbox: "Queue[tuple[_Worker, dict[str, Any]]]") -> None:
        self.point: Point | None = None
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

    def start(self, point: Point, store: Path, capture: bool, patience: float) -> None:
        """Send a point to the process."""
        spec = point.spec
        task = {
            "text": spec.text,
            "path": spec.path,
            "overrides": spec.overrides,
            "sweep": spec.sweep,
            "target": str(point.target(store)),
            "capture": capture,
            "patience": patience,
        }
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it has died: its listener says so
            self.process.stdin.write(json.dumps(task) + "\n")
            self.process.stdin.flush()

    def end(self) -> None:
        """Kill the process."""
        self.point = None
        self.process.kill()

    def close(self) -> None:
        """Wait for the process's end, and close its streams."""
        self.process.wait()
        self.listener.join()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()
