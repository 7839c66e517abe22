"""The processes of a run: one processor for each run, and no process that outlives its run."""

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

CLAIM = "firstlight-cpu"


@contextlib.contextmanager
def own_cpu() -> Iterator[int]:
    """A processor that no other run uses, of those that this process may use.

    A kernel and its programs switch to each other all the time, which is five times slower across processors.
    The claim on a processor is a name that only one socket can have; it ends with the process. With more runs
    than processors the later ones share.
    """
    allowed = sorted(os.sched_getaffinity(0))
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as claim:
        for cpu in allowed:
            with contextlib.suppress(OSError):
                claim.bind(f"\0{CLAIM}-{cpu}")
                yield cpu
                return
        yield allowed[os.getpid() % len(allowed)]


def members(session: int) -> list[int]:
    """The processes of a session, except those that have ended and were not yet reaped."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                state, _, _, of = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()[:4]
                if int(of) == session and state != "Z":
                    found.append(int(entry.name))
    return found


def end(process: "subprocess.Popen[bytes]", within: float = 5.0) -> None:
    """End a process that leads its own session, and all that it started."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    deadline = time.monotonic() + within
    while (left := members(process.pid)) and time.monotonic() < deadline:
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.005)
