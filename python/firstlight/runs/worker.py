"""A worker process: one task per input line, one JSON message per output line.

:mod:`firstlight.runs.pool` starts it as ``python -m firstlight.runs.worker``. It exits when its input closes,
so it never outlives the process that started it.
"""

import contextlib
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from firstlight import core
from firstlight.errors import FirstlightError
from firstlight.runs.result import is_sound
from firstlight.runs.run import store


class Reporter:
    """Writes messages to the parent, progress at most ten times a second."""

    def __init__(self) -> None:
        self._next = 0.0

    def send(self, **message: Any) -> None:
        """Write one message as one line."""
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()

    def progress(self, fraction: float) -> None:
        """Report the fraction done of the present point."""
        if (now := time.monotonic()) >= self._next:
            self._next = now + 0.1
            self.send(progress=fraction)


def read_tasks(tasks: "SimpleQueue[str]") -> None:
    """Queue the input's lines; at its end the process exits at once, even during a run."""
    for line in sys.stdin:
        tasks.put(line)
    os._exit(0)


def run_point(
    spec: core.Spec, target: Path, capture: bool, progress: Callable[[float], None] | None, patience: float
) -> None:
    """Run a point, unless another process has stored its result meanwhile."""
    if not is_sound(target):
        store(spec.check(), target, capture, progress, patience, shared=True)


def main() -> None:
    """Serve tasks until the input closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    tasks: SimpleQueue[str] = SimpleQueue()
    threading.Thread(target=read_tasks, args=(tasks,), daemon=True).start()
    report = Reporter()
    while True:
        task = json.loads(tasks.get())
        spec = core.Spec(task["text"], task["path"], task["overrides"], task["sweep"])
        try:
            run_point(spec, Path(task["target"]), task["capture"], report.progress, task["patience"])
        except FirstlightError as e:
            report.send(error=str(e), kind=type(e).__name__)
        except Exception as e:
            report.send(error=f"{type(e).__name__}: {e}", kind="RunError")
        else:
            report.send(done=True)


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):
        main()
