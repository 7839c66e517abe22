"""Temporary directories of builds in the cache, and the lock that allows one build at a time."""

import contextlib
import fcntl
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

Say = Callable[[str], None]
WORK = ".building-"


@contextlib.contextmanager
def workplace(folder: Path, say: Say = lambda _: None) -> Iterator[Path]:
    """A temporary directory in ``folder``. Its removal can take a while: it may hold some 50,000 files."""
    work = Path(tempfile.mkdtemp(prefix=WORK, dir=folder))
    try:
        yield work
    except KeyboardInterrupt:
        say("interrupted: removing what was unpacked")
        raise
    finally:
        shutil.rmtree(work, ignore_errors=True)


@contextlib.contextmanager
def only_one(folder: Path, say: Say = lambda _: None) -> Iterator[None]:
    """Hold the lock that allows one build at a time in ``folder``; remove the directories of builds that were
    killed."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another build is under way: waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        for leftover in folder.glob(f"{WORK}*"):
            shutil.rmtree(leftover, ignore_errors=True)
        yield
