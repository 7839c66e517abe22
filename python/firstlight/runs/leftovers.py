"""Names of unfinished files and directories, and the clearing of those whose process is gone.

A name says which process on which machine writes it, so that nothing of a live process is removed, not even
when several machines share a directory.
"""

import functools
import hashlib
import os
import re
import secrets
import shutil
import socket
import time
from collections.abc import Iterator
from pathlib import Path

PREFIX = ".firstlight-"
_NAME = re.compile(re.escape(PREFIX) + r"([0-9a-f]{8})-([0-9a-f]{8})-(\d+)-[0-9a-f]{8}")
FORGOTTEN_S = 30 * 86_400.0
"""Age in seconds after which an unfinished directory of another machine counts as left."""


def new_name() -> str:
    """A name that no other process uses, for a file or directory that is not complete yet."""
    return f"{PREFIX}{_machine()}-{_boot()}-{os.getpid()}-{secrets.token_hex(4)}"


def clear(folder: Path) -> None:
    """Remove unfinished files and directories of processes that no longer exist from ``folder`` (after a
    power failure or a kill -9)."""
    for path in left_in(folder):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def left_in(folder: Path) -> Iterator[Path]:
    """The unfinished files and directories in ``folder`` whose process no longer exists."""
    return (path for path, is_over in _unfinished(folder) if is_over)


def live_in(folder: Path) -> int:
    """How many directories in ``folder`` are being written."""
    return sum(path.is_dir() for path, is_over in _unfinished(folder) if not is_over)


def _unfinished(folder: Path) -> Iterator[tuple[Path, bool]]:
    """The unfinished files and directories in ``folder``, and whether their process is over."""
    try:
        with os.scandir(folder) as entries:
            names = [e.name for e in entries if e.name.startswith(PREFIX)]
    except OSError:
        return
    for name in names:
        if found := _NAME.fullmatch(name):
            yield folder / name, _is_over(folder / name, found[1], found[2], int(found[3]))


def _is_over(path: Path, machine: str, boot: str, pid: int) -> bool:
    if machine != _machine():
        try:
            return time.time() - path.lstat().st_mtime > FORGOTTEN_S
        except OSError:
            return False
    return boot != _boot() or not is_alive(pid)


def is_alive(pid: int) -> bool:
    """Whether a process of this machine exists and has not ended."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    try:
        state = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return Path("/proc/self/stat").exists() is False
    return state != "Z"


@functools.cache
def _machine() -> str:
    """Eight hex digits for this machine and its name space of processes."""
    try:
        space = os.readlink("/proc/self/ns/pid")
    except OSError:
        space = ""
    return _digits(socket.gethostname(), _content("/etc/machine-id"), space)


@functools.cache
def _boot() -> str:
    """Eight hex digits for the machine's start: processes of an earlier one are gone."""
    return _digits(_content("/proc/sys/kernel/random/boot_id"))


def _content(file: str) -> str:
    try:
        return Path(file).read_text(errors="replace")
    except OSError:
        return ""


def _digits(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode(errors="replace")).hexdigest()[:8]
