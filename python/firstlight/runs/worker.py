"""A worker process: one task per input line, one JSON message per output line.

:mod:`firstlight.runs.forkserver` starts it for :mod:`firstlight.runs.pool`. It exits when its input closes,
so it never outlives the process that needs it.
"""

import contextlib
import json
import os
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from firstlight import core
from firstlight.errors import FirstlightError
from firstlight.runs.result import is_sound
from firstlight.runs.run import computed


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


STORING = 4
"""Results that a worker stores at a time."""


class Storing:
    """Stores results in threads of its own, so that the next points run while the last reach the disk."""

    def __init__(self, report: Reporter) -> None:
        self._report = report
        self._threads = ThreadPoolExecutor(STORING)
        self._begun: deque[Future[None]] = deque()

    def add(self, number: int, finish: Callable[[], None]) -> None:
        """Store a result and say so, as soon as few enough others are being stored."""
        self._report.send(computed=True, number=number)
        while len(self._begun) >= STORING:
            self._begun.popleft().result()
        self._begun.append(self._threads.submit(self._finish, number, finish))

    def wait(self) -> None:
        """Wait until all results are stored."""
        while self._begun:
            self._begun.popleft().result()

    def _finish(self, number: int, finish: Callable[[], None]) -> None:
        with told(self._report, number):
            finish()
            self._report.send(done=True, number=number)


@contextlib.contextmanager
def told(report: Reporter, number: int, before: Callable[[], None] = lambda: None) -> Iterator[None]:
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
    with told(report, number, storing.wait):
        if is_sound(target):
            report.send(computed=True, number=number)
            report.send(done=True, number=number)
            return
        spec = core.Spec(task["text"], task["path"], task["overrides"], task["sweep"])

        def progress(fraction: float) -> None:
            report.progress(fraction, number)

        finish = computed(spec.check(), target, task["capture"], progress, task["patience"], shared=True)
        storing.add(number, finish)


def main() -> None:
    """Serve tasks until the input closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    tasks: SimpleQueue[str] = SimpleQueue()
    threading.Thread(target=read_tasks, args=(tasks,), daemon=True).start()
    report = Reporter()
    storing = Storing(report)
    while True:
        serve(json.loads(tasks.get()), report, storing)
