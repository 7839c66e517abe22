"""Runs points on any executor of the standard library's protocol: Dask, loky, executorlib, mpi4py.futures.

A task is :func:`run_task`, which any process with the same build of Firstlight can call. Where the executor's
workers see the sweep's directory, a result lies there at once; elsewhere it comes back as bytes.
"""

import tempfile
from collections import deque
from collections.abc import Iterator
from concurrent.futures import CancelledError, Executor, Future
from pathlib import Path
from queue import Queue
from typing import TYPE_CHECKING, Any

from firstlight import core, errors
from firstlight.runs import leftovers
from firstlight.runs.result import is_sound
from firstlight.runs.run import key, store
from firstlight.runs.staging import Staging, replace_text

if TYPE_CHECKING:
    from firstlight.runs.pool import Means, Point

WAITING = 256
"""Points that an executor is given at a time, so that a large sweep takes little memory."""
ATTEMPTS = 3
"""How often a point is begun whose worker dies."""
Task = dict[str, Any]
Files = dict[str, bytes]


class Stopped(BaseException):
    """The sweep that a point belongs to has ended."""


def run_task(task: Task) -> tuple[str, str] | Files | None:
    """Run one point, in any process on any machine.

    ``None``: the result is in the sweep's directory. A dictionary: the files of the result, where this
    process does not see that directory. A pair: the kind and the text of an error.
    """
    try:
        experiment = core.Spec(task["text"], task["path"], task["overrides"], task["sweep"]).check()
        if (found := key(experiment)) != task["key"]:
            return "RunError", _other_machine(task, found)
        target, token = Path(task["target"]), Path(task["token"])
        if token.is_file():
            _into(target, experiment, task, token)
            return None
        with tempfile.TemporaryDirectory(prefix="firstlight-point-") as folder:
            place = Path(folder, "result")
            _into(place, experiment, task, None)
            return {str(f.relative_to(place)): f.read_bytes() for f in place.rglob("*") if f.is_file()}
    except Stopped:
        return "RunError", "the sweep has ended"
    except errors.FirstlightError as e:
        return type(e).__name__, str(e)


def _into(target: Path, experiment: core.Experiment, task: Task, token: Path | None) -> None:
    def watch(_: float) -> None:
        if token is not None and not token.is_file():
            raise Stopped

    if not is_sound(target):
        store(experiment, target, task["capture"], watch, task["patience"], shared=True)


def _other_machine(task: Task, found: str) -> str:
    import socket

    where = socket.gethostname()
    if task["build"] != core.build():
        return (
            f"the worker on {where} has another build ({core.build()}) than the sweep ({task['build']}): "
            "install the same one there"
        )
    return (
        f"the worker on {where} would run something else (key {found[:8]} instead of {task['key'][:8]}): "
        "it has another kernel of Linux hosts, or other files beside the experiment"
    )


class Remote:
    """One call's points on an executor."""

    def __init__(
        self,
        executor: Executor,
        points: "Iterator[Point]",
        folder: Path,
        means: "Means",
    ) -> None:
        self._executor = executor
        self._points = points
        self._store = folder
        self._listener = means.listener
        self._options: Task = {"capture": means.capture, "patience": means.patience}
        self._inbox: Queue[Future[Any]] = Queue()
        self._running: dict[Future[Any], tuple[Point, int]] = {}
        self._again: deque[tuple[Point, int]] = deque()

    def run(self) -> None:
        """Run all points; on an error or Ctrl-C nothing more is begun, and running points are stopped."""
        token = self._store / leftovers.new_name()
        replace_text(token, "The sweep goes on while this file is here.\n")
        self._options["token"] = str(token.absolute())
        try:
            while self._fill() or self._running:
                self._handle(self._inbox.get())
        finally:
            token.unlink(missing_ok=True)
            for future in self._running:
                future.cancel()

    def _fill(self) -> bool:
        """Give the executor points until enough wait there; whether there was one to give."""
        given = False
        while len(self._running) < WAITING:
            if self._again:
                point, attempt = self._again.popleft()
            elif following := next(self._points, None):
                point, attempt = following, 1
            else:
                break
            future = self._executor.submit(run_task, self._task(point))
            self._running[future] = point, attempt
            future.add_done_callback(self._inbox.put)
            given = True
        return given

    def _task(self, point: "Point") -> Task:
        spec = point.spec
        return {
            "text": spec.text,
            "path": str(Path(spec.path).absolute()),
            "overrides": spec.overrides,
            "sweep": spec.sweep,
            "key": point.key,
            "build": core.build(),
            "target": str(point.target(self._store).absolute()),
            **self._options,
        }

    def _handle(self, future: "Future[Any]") -> None:
        point, attempt = self._running.pop(future)
        try:
            answer = future.result()
        except CancelledError:
            raise errors.RunError(
                f"{point.label}: the executor cancelled it; start the sweep again"
            ) from None
        except Exception as e:  # whatever an executor raises when a worker dies
            if attempt >= ATTEMPTS:
                raise errors.RunError(f"{point.label}: failed {attempt} times: {e!r}") from e
            self._again.append((point, attempt + 1))
            return
        if isinstance(answer, tuple):
            kind, text = answer
            raise getattr(errors, kind, errors.RunError)(f"{point.label}: {text}")
        if answer is not None:
            target = point.target(self._store)
            with Staging(target, keep=is_sound) as staging:
                staging.commit(_Bytes(answer))
        if self._listener:
            self._listener(point, "done", 1.0)


class _Bytes:
    """A result as its files."""

    def __init__(self, files: Files) -> None:
        self._files = files

    def write(self, directory: Path) -> None:
        """Write the files."""
        for name, content in self._files.items():
            (directory / name).parent.mkdir(parents=True, exist_ok=True)
            (directory / name).write_bytes(content)
