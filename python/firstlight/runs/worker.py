"""A worker process: one task per input line, one JSON message per output line.

:mod:`firstlight.runs.forkserver` starts it for :mod:`firstlight.runs.pool`. It exits when its input closes,
so it never outlives the process that needs it.
"""

import base64
import contextlib
import json
import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue, SimpleQueue
from typing import Any

from firstlight import core
from firstlight.errors import FirstlightError
from firstlight.runs.result import is_sound
from firstlight.runs.run import computed
from firstlight.runs.staging import Staging, commit_all


class Reporter:
    """Writes messages to the parent, progress at most ten times a second."""

    def __init__(self) -> None:
        self._next = 0.0
        self._lock = threading.Lock()

    def send(self, **message: Any) -> None:
        """Write one message as one line."""
        with self._lock:
            sys.stdout.write(json.dumps(message) + "\n")
            sys.stdout.flush()

    def progress(self, fraction: float, number: int) -> None:
        """Report the fraction done of the present point."""
        if (now := time.monotonic()) >= self._next:
            self._next = now + 0.1
            self.send(progress=fraction, number=number)


def read_tasks(tasks: "SimpleQueue[str]") -> None:
    """Queue the input's lines; at its end the process exits at once, even during a run."""
    for line in sys.stdin:
        tasks.put(line)
    os._exit(0)


WAITING = 64
"""Results at most that wait for the disk; with more the next point waits, too."""
THREADS = 16
"""Threads that wait for the disk, each for a file."""


Row = dict[str, Any] | None
"""A result's row, where it is asked for."""
Written = tuple[int, Row, Staging]
"""The number of a point, its row, and the directory of its result."""


class Storing:
    """Brings results to the disk in a thread of its own, while the next points run: in one go all those that
    have gathered meanwhile."""

    def __init__(self, report: Reporter) -> None:
        self._report = report
        self._written: Queue[Written] = Queue(WAITING)
        self._each = ThreadPoolExecutor(THREADS).map
        threading.Thread(target=self._store, daemon=True).start()

    def add(self, number: int, row: Row, written: Staging) -> None:
        """Store a result, and say so when it is stored."""
        self._report.send(computed=True, number=number)
        self._written.put((number, row, written))

    def wait(self) -> None:
        """Wait until all results are stored."""
        self._written.join()

    def _store(self) -> None:
        while True:
            group = [self._written.get()]
            while not self._written.empty():
                group.append(self._written.get())
            with errors_reported(self._report, group[0][0]):
                commit_all([written for *_, written in group], self._each)
                self._report.send(done=[(number, row) for number, row, _ in group])
            for _ in group:
                self._written.task_done()


@contextlib.contextmanager
def errors_reported(
    report: Reporter, number: int, before: Callable[[], None] = lambda: None
) -> Iterator[None]:
    """Report an error to the parent instead of raising it; ``before`` is done first, since the parent then
    ends this process."""
    try:
        yield
    except FirstlightError as e:
        before()
        report.send(error=str(e), kind=type(e).__name__, number=number)
    except Exception as e:
        before()
        report.send(error=f"{type(e).__name__}: {e}", kind="RunError", number=number)


def serve(task: dict[str, Any], report: Reporter, storing: Storing) -> None:
    """Run a point, unless another process has stored its result meanwhile."""
    number, target = task["number"], Path(task["target"])
    with errors_reported(report, number, storing.wait):
        if is_sound(target):
            report.send(computed=True, number=number)
            report.send(done=[(number, None)])
            return
        spec = core.Spec(task["text"], task["path"], task["overrides"], task["sweep"])

        def progress(fraction: float) -> None:
            report.progress(fraction, number)

        settings = task["capture"], progress, task["patience"]
        written, result = computed(spec.check(), target, *settings, shared=True)
        storing.add(number, result.row if task["row"] else None, written)


def as_text(value: Any) -> str:
    """A pickled value, for a line of JSON."""
    return base64.b64encode(pickle.dumps(value)).decode()


def of_text(text: str) -> Any:
    """The value that :func:`as_text` has made a text of."""
    return pickle.loads(base64.b64decode(text))


def call(task: dict[str, Any], report: Reporter) -> None:
    """Call a function, and report what it returns."""
    number = task["number"]
    with errors_reported(report, number):
        function, item = of_text(task["call"])
        report.send(number=number, returned=as_text(function(item)))


def main() -> None:
    """Serve tasks until the input closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    tasks: SimpleQueue[str] = SimpleQueue()
    threading.Thread(target=read_tasks, args=(tasks,), daemon=True).start()
    report = Reporter()
    storing = Storing(report)
    while True:
        task = json.loads(tasks.get())
        if "call" in task:
            call(task, report)
        else:
            serve(task, report, storing)
