"""Measures the costs of ``[linux.cpu]`` on this machine (``firstlight doctor --measure-cpu``)."""

import os
import platform
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from firstlight import _core

MEMORY = "/dev/shm"
"""A folder in memory, if there is one."""
KEYS = ("syscall", "clock", "wakeup", "idle", "copy", "interrupt", "packet", "send")
"""What is measured, in the order of the reference."""


def measure() -> dict[str, Any]:
    """The keys of ``[linux.cpu]`` for this machine: without ``idle`` and ``interrupt`` where it has one
    processor. Takes a few seconds."""
    folder = MEMORY if os.access(MEMORY, os.W_OK | os.X_OK) else None
    cores = len(os.sched_getaffinity(0))
    with tempfile.NamedTemporaryFile(dir=folder) as file, on_one_processor() as others:
        took = _core.measure_processor(file.name, min(others, default=None))
    # One processor does the work of both ends.
    message = _core.measure_messages() / (1 if cores > 1 else 2)
    took["packet"] = took["send"] = max(message / 2 - took["syscall"], 0)
    return {"cores": cores, **{key: as_time(took[key]) for key in KEYS if key in took}}


@contextmanager
def on_one_processor() -> Iterator[set[int]]:
    """Keep this thread and those that it starts on one processor, where a wake-up is a switch of contexts.
    Yields the other processors."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        yield before - {min(before)}
    finally:
        os.sched_setaffinity(0, before)


def as_time(nanoseconds: float) -> str:
    """A time as an experiment has it: in whole ps below 10 ns, else in whole ns."""
    if nanoseconds < 10:
        return f"{nanoseconds * 1000:.0f}ps"
    return f"{nanoseconds:.0f}ns"


def as_toml(measured: dict[str, Any]) -> str:
    """The table as it is pasted into an experiment."""
    remarks = {
        "interrupt": "by another processor",
        "packet": "half of receiving and sending a byte over TCP",
        "send": "the other half",
    }
    needs_two = "" if "interrupt" in measured else "idle, interrupt (they need two processors), "
    lines = [
        f"# {model()}, Linux {platform.release()}, by firstlight doctor --measure-cpu.",
        f"# Not measured: {needs_two}moderation (it needs a network card).",
        "[linux.cpu]",
    ]
    for key, value in measured.items():
        text = str(value) if isinstance(value, int) else f'"{value}"'
        lines.append(f"{key} = {text}" + (f" # {remarks[key]}" if key in remarks else ""))
    return "\n".join(lines)


def model() -> str:
    """The processor's name, on one line."""
    text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    found = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return found[1].strip() if found else platform.machine()
