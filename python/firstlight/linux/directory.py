"""The directory of one run in a kernel: the kernel's input and output.

It lies on a file system in memory, where the kernel's own memory lies too, and is gone when the run has
ended. A lock marks it as in use; directories whose process was killed are cleared by the next run.
"""

import contextlib
import fcntl
import json
import os
import shutil
import struct
import tempfile
import time
from pathlib import Path
from typing import Any

from firstlight.errors import RunError

PREFIX = "firstlight-run-"
CONSOLE = "console.log"
PROGRAMS = "programs"
MODULES = "modules"
LOGS = (CONSOLE, PROGRAMS, "experiment.toml", "run.json", "plan.json", "failure.json")
"""Files of a failed run that are kept."""
OUTPUT_MB = 64
"""How much a program may write to its output and its error output together, in MiB."""
NEWBORN = 60.0
"""Seconds after its creation for which a directory may be without a lock."""


class RunDirectory:
    """A new run directory; it is removed on exit."""

    def __init__(self, memory_mb: int) -> None:
        self.path = Path()
        self._memory_mb = memory_mb
        self._lock = -1

    def __enter__(self) -> "RunDirectory":
        parent = place(self._memory_mb)
        clear_leftovers(parent)
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
        # Locked before it has its name: a lock that can be found and taken belongs to no process.
        unnamed = self.path / "lock.new"
        self._lock = os.open(unnamed, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        unnamed.rename(self.path / "lock")
        (self.path / PROGRAMS).mkdir()
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)

    def write(self, name: str, text: str) -> None:
        """Write a file for the kernel to read."""
        try:
            (self.path / name).write_text(text, encoding="utf-8")
        except OSError as e:
            raise RunError(f"{self.path / name}: cannot be written: {e.strerror}") from None

    def link(self, name: str, target: Path) -> Path:
        """A link in the directory to ``target``, whose own path may have blanks, commas and colons, which a
        kernel's command line and ``LD_PRELOAD`` cannot contain."""
        link = self.path / name
        link.symlink_to(target.resolve())
        return link

    def json(self, name: str) -> Any:
        """The content of the JSON file ``name``; ``None`` without such a file."""
        try:
            return json.loads((self.path / name).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as e:
            raise RunError(f"the kernel's {name} cannot be read: {e}") from None

    def console(self) -> str:
        """The kernel's console output so far."""
        try:
            return (self.path / CONSOLE).read_bytes().decode(errors="replace")
        except OSError:
            return ""

    def killed(self) -> str:
        """The name of a process that the kernel has ended because memory was full; empty if there is none."""
        try:
            return (self.path / "killed").read_bytes().decode(errors="replace")
        except OSError:
            return ""

    def virtual_ns(self) -> int | None:
        """Virtual time since the run's start, by the hosts' clock; ``None`` before it."""
        try:
            noted = (self.path / "progress").read_bytes()
        except OSError:
            return None
        return int(struct.unpack_from("<Q", noted)[0]) if len(noted) >= 16 else None

    def outputs(self) -> dict[str, bytes]:
        """Outputs of the programs, by file name."""
        found = sorted((self.path / PROGRAMS).iterdir())
        return {f.name: f.read_bytes() for f in found if f.is_file() and not f.is_symlink()}

    def check_outputs(self, plan: dict[str, Any]) -> None:
        """Raise :class:`RunError` when a program of the plan has written more than ``OUTPUT_MB``."""
        for program in plan["programs"]:
            files = (self.path / PROGRAMS / f"{program['name']}.{end}" for end in ("out", "err"))
            if sum(size(file) for file in files) > OUTPUT_MB << 20:
                host = plan["hosts"][program["on"]]["names"][0]
                raise RunError(
                    f"program {program['name']} on {host} ({program['command']}) wrote more than {OUTPUT_MB} "
                    "MiB to its output: let it write less, or redirect what is not needed to /dev/null"
                )

    def keep(self, wanted: Path | None) -> str:
        """Keep the logs of a failed run as ``wanted``, else in a new temporary directory; return a sentence
        that says where."""
        try:
            kept = logs_directory(wanted)
            for name in LOGS:
                source = self.path / name
                if source.is_dir():
                    shutil.copytree(source, kept / name, dirs_exist_ok=True)
                elif source.is_file():
                    shutil.copyfile(source, kept / name)
        except OSError as e:
            return f"its logs could not be kept ({e.strerror or e})"
        return f"its logs are in {kept}"


def size(file: Path) -> int:
    """The size of ``file`` in bytes, 0 without such a file."""
    try:
        return file.stat().st_size
    except OSError:
        return 0


def logs_directory(wanted: Path | None) -> Path:
    """An empty directory for logs: ``wanted`` when it is free or holds logs of an earlier failure."""
    if wanted is not None:
        forget_logs(wanted)
        with contextlib.suppress(FileExistsError):
            wanted.mkdir(parents=True)
            return wanted
    return Path(tempfile.mkdtemp(prefix="firstlight-failed-"))


def forget_logs(directory: Path) -> None:
    """Remove the logs of an earlier failure, and no other files."""
    if (directory / CONSOLE).is_file() and (directory / "plan.json").is_file():
        shutil.rmtree(directory, ignore_errors=True)


def place(memory_mb: int) -> Path:
    """A directory in memory with room for the kernel's memory."""
    rooms = []
    for path in dict.fromkeys((Path("/dev/shm"), Path("/run/shm"), Path(tempfile.gettempdir()))):
        if path.is_dir() and os.access(path, os.W_OK | os.X_OK) and not set(str(path)) & set(" ,"):
            free = os.statvfs(path).f_bavail * os.statvfs(path).f_frsize >> 20
            if free >= memory_mb:
                return path
            rooms.append(f"{path} has {free}")
    raise RunError(
        f"no room for a kernel: {memory_mb} MB are needed in /dev/shm or the temporary directory; "
        + (", ".join(rooms) or "neither can be written to")
    )


def clear_leftovers(parent: Path) -> None:
    """Remove run directories of processes that no longer exist (after a kill -9)."""
    for path in parent.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            if path.stat().st_uid != os.getuid():
                continue
            if not (path / "lock").exists():
                if time.time() - path.stat().st_mtime > NEWBORN:
                    shutil.rmtree(path, ignore_errors=True)
                continue
            lock = os.open(path / "lock", os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path, ignore_errors=True)
            finally:
                os.close(lock)
