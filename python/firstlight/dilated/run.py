"""One run on hosts in dilated time: the engine's process is started, watched and ended.

The engine reads the same run directory as a kernel in virtual time, and leaves the same ``outcome.json`` or
``failure.json``. Everything that it makes in the system ends with it.
"""

import contextlib
import gzip
import itertools
import json
import os
import platform
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from firstlight import core
from firstlight.dilated import controls, machines
from firstlight.linux import guest, installed, outcome
from firstlight.linux.directory import RunDirectory
from firstlight.linux.processes import end

MEMORY_MB = 64
"""Room for a run's files."""
CLAIM = "\0firstlight-dilated"
"""A name that only one socket of the machine can have: runs in dilated time disturb each other."""
OCCUPIED = "another run in dilated time, or `firstlight join`, has this machine: waiting for its end"
WAIT_S = 0.2
ENDING_S = 12.0
"""How long an engine may take to clean up when it is asked to end."""


def execute(
    experiment: core.Experiment,
    progress: Callable[[float], None] | None = None,
    capture: str | Path | None = None,
    *,
    patience: float = core.PATIENCE,
    logs: Path | None = None,
) -> core.Output:
    """Run ``experiment`` on this machine's kernel, when no other such run goes on. Parameters and result are
    those of :func:`firstlight.linux.guest.execute`."""
    text = experiment.linux_plan()
    plan = json.loads(text)
    with (
        RunDirectory(MEMORY_MB) as run,
        alone(),
        controls.ready(plan),
        machines.gathered(experiment, plan) as others,
    ):
        guest.prepare(run, experiment, text, capture)
        dilated = {**settings(run), "joined": others.for_engine()}
        run.write("run.json", json.dumps({**run.json("run.json"), "dilated": dilated}))
        others.prepare(run)
        with guest.logs_kept(run, logs):
            others.begin(experiment.resolved["time_scale"])
            with started(run) as process:
                guest.watch(process, run, plan, others.watched(progress), patience)
            others.collect(run)
            return others.add_to(outcome.read(run, described()), run)


def settings(run: RunDirectory) -> dict[str, Any]:
    """The engine's settings besides the experiment."""
    return {
        "guest": str(installed.guest()),
        "libvt": str(run.link("libvt.so", installed.libvt())),
        "libadu": str(run.link("libadu.so", installed.libadu())),
    }


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """Wait until no other run in dilated time goes on, and keep others waiting. Standard error says if one
    does: it may be a `firstlight join`, which goes on until somebody ends it."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as claim:
        for attempt in itertools.count():
            try:
                claim.bind(CLAIM)
            except OSError:
                if attempt == 0:
                    print(OCCUPIED, file=sys.stderr, flush=True)
                time.sleep(WAIT_S)
                continue
            yield
            return


@contextlib.contextmanager
def started(run: RunDirectory) -> "Iterator[subprocess.Popen[bytes]]":
    """The engine's process, which ends with this one; it and all that it started are gone on exit."""
    words = [str(installed.dilated_engine()), str(run.path)]
    process = guest.spawned(run, words, -1, {"HOME": os.environ.get("HOME", "/")})
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(ENDING_S)
        end(process)


CONFIGURATIONS = (Path("/proc/config.gz"), Path(f"/boot/config-{platform.release()}"))
"""Where a Linux kernel's configuration may be read."""


def hz() -> int | None:
    """Ticks per second of this machine's kernel; None where its configuration cannot be read."""
    for file in CONFIGURATIONS:
        with contextlib.suppress(OSError):
            content = file.read_bytes()
            text = gzip.decompress(content) if file.suffix == ".gz" else content
            if found := re.search(rb"^CONFIG_HZ=(\d+)$", text, re.MULTILINE):
                return int(found[1])
    return None


def described() -> dict[str, Any]:
    """This machine's kernel, for a manifest."""
    return {"version": platform.release(), "hz": hz(), "source": "the machine's own", "mode": "dilated"}
