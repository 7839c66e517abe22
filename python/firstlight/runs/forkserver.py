"""Starts worker processes that need not import anything.

A process of its own imports what a point needs, and forks a worker whenever it is asked to. It has one
thread, so that forking is safe whatever the caller's program does; nothing of that program is imported again.
It lives as long as its caller, so that a second sweep begins at once.
"""

import atexit
import contextlib
import gc
import itertools
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import traceback
from pathlib import Path

from firstlight import core
from firstlight.errors import RunError
from firstlight.runs import run, worker
from firstlight.runs.result import Result

MESSAGE = struct.Struct("!qq")
"""A request: its number, and the worker to end, or :data:`FORK` with the streams of a new one. The answer:
the request's number, and the exit code, or the new worker's number."""
FORK = 0
NONE = -1
"""The answer where no process can be forked."""
COMMAND = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from firstlight.runs import forkserver; forkserver.serve()"
)


class Child:
    """A worker process, what it reads and what it writes."""

    def __init__(self) -> None:
        theirs_in, ours_out = os.pipe()
        ours_in, theirs_out = os.pipe()
        directory = os.open(".", getattr(os, "O_PATH", os.O_RDONLY))
        errors = _standard_error()
        try:
            self.number, server = _fork([theirs_in, theirs_out, errors, directory])
            if self.number == NONE:
                raise RunError("no worker process can be started: there are too many, or memory is short")
        except BaseException:
            os.close(ours_in)
            os.close(ours_out)
            raise
        finally:
            for stream in (theirs_in, theirs_out, errors, directory):
                os.close(stream)
        self.stdin = os.fdopen(ours_out, "w", encoding="utf-8")
        self.stdout = os.fdopen(ours_in, encoding="utf-8")
        self._server = server
        self._code: int | None = None
        self._lock = threading.Lock()
        with contextlib.suppress(BrokenPipeError):  # it has died, and its output ends
            self.stdin.write(json.dumps(dict(os.environ)) + "\n")
            self.stdin.flush()

    def end(self) -> int:
        """Kill the process, if it still runs, and give its exit code, negative for a signal."""
        with self._lock:
            if self._code is None:
                self._code = self._server.ask(self.number)
            return self._code


def prepare() -> None:
    """Start the process that forks workers, which takes a moment, unless it runs already."""
    _usable()


@atexit.register
def end() -> None:
    """End the process that forks workers; the next worker starts another."""
    global _server
    with _starting:
        if _server is not None:
            _server.close()
            _server = None


class _Server:
    def __init__(self) -> None:
        self._owner = os.getpid()
        self._lock = threading.Lock()
        self._requests = itertools.count()
        self._has_ended = False
        self._ours, theirs = socket.socketpair()
        errors = _standard_error()
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", COMMAND, json.dumps(sys.path)],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=errors,
                start_new_session=True,  # a terminal's Ctrl-C reaches the caller only
            )
        finally:
            os.close(errors)
            theirs.close()

    def is_usable(self) -> bool:
        """Whether it runs, and is not that of a process from which this one was forked."""
        return self._owner == os.getpid() and not self._has_ended and self._process.poll() is None

    def ask(self, request: int, streams: list[int] | None = None) -> int:
        """The answer to a request; raises :class:`RunError` when there is none."""
        with self._lock, contextlib.suppress(OSError):
            number = next(self._requests)
            socket.send_fds(self._ours, [MESSAGE.pack(number, request)], streams or [])
            while answer := self._ours.recv(MESSAGE.size):
                answered, value = MESSAGE.unpack(answer)
                if answered == number:  # else: of a request that Ctrl-C has interrupted
                    return int(value)
        self._has_ended = True
        raise RunError(
            "the process that starts workers has ended; start again, with fewer jobs if memory is short"
        )

    def close(self) -> None:
        """End it, which may be importing still; one of a process from which this one was forked goes on."""
        self._ours.close()
        if self._owner == os.getpid():
            self._process.kill()
            self._process.wait()


_server: _Server | None = None
_starting = threading.Lock()


def _usable() -> _Server:
    global _server
    with _starting:
        if _server is not None and not _server.is_usable():
            _server.close()
            _server = None
        if _server is None:
            _server = _Server()
        return _server


def _fork(streams: list[int]) -> tuple[int, _Server]:
    """The number of a new worker, and its server: another one where that has been killed meanwhile."""
    server = _usable()
    try:
        return server.ask(FORK, streams), server
    except RunError:
        server = _usable()
        return server.ask(FORK, streams), server


def _standard_error() -> int:
    """A copy of standard error; where there is none, its number may belong to another file."""
    with contextlib.suppress(OSError):
        if os.get_inheritable(2):
            return os.dup(2)
    return os.open(os.devnull, os.O_WRONLY)


def serve() -> None:
    """Fork and end workers, as the caller asks on standard input, until it has ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _warm_up()
    caller = socket.socket(fileno=os.dup(0))
    children: set[int] = set()
    while True:
        message, streams, _, _ = socket.recv_fds(caller, MESSAGE.size, 4)
        if not message:
            return
        number, request = MESSAGE.unpack(message)
        if request == FORK:
            try:
                answer = os.fork()
            except OSError:
                answer = NONE
            if answer == 0:
                caller.close()
                _become_worker(streams)
            children.add(answer)
            for stream in streams:
                os.close(stream)
        elif request in children:
            children.discard(request)
            os.kill(request, signal.SIGKILL)
            answer = os.waitstatus_to_exitcode(os.waitpid(request, 0)[1])
        else:
            answer = NONE
        with contextlib.suppress(OSError):
            caller.sendall(MESSAGE.pack(number, answer))


WARM_UP = """
duration = "10us"
[fabric]
kind = "star"
hosts = 2
[hosts]
rate = "10Gbps"
delay = "1us"
[[flows]]
from = "host0"
to = "host1"
"""


def _warm_up() -> None:
    """Do once what a worker does: what it needs is then imported and in memory, and workers share it."""
    experiment = core.Spec(WARM_UP, "warm-up").check()
    known, output = run.asked(experiment), core.simulate(experiment)
    with contextlib.suppress(OSError), tempfile.TemporaryDirectory(prefix="firstlight-") as folder:
        Result({**output.manifest, **known}, output.tables).write(Path(folder))
    gc.freeze()  # a worker that collects garbage then leaves this memory as it is, that is shared


def _become_worker(streams: list[int]) -> None:
    """Serve tasks on the given streams, in the caller's present directory and environment, then exit."""
    os.setsid()
    *standard, directory = streams
    for number, stream in enumerate(standard):
        os.dup2(stream, number)
    with contextlib.suppress(OSError):
        os.fchdir(directory)
    for stream in streams:
        os.close(stream)
    code = 0
    try:
        if environment := sys.stdin.readline():  # else the caller has given up
            os.environ.clear()
            os.environ.update(json.loads(environment))
            worker.main()
    except BrokenPipeError:
        pass  # nobody reads the answers any more
    except BaseException:
        traceback.print_exc()
        code = 1
    finally:
        os._exit(code)
