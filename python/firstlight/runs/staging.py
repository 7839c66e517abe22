"""Writes files and directories completely or not at all, and only where they belong."""

import contextlib
import ctypes
import errno
import functools
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import BinaryIO, Protocol

from firstlight.core import named
from firstlight.errors import ResultError
from firstlight.runs import leftovers
from firstlight.stored import read_json

MARK = ".firstlight"
"""A file that marks a directory of many results: what Firstlight wrote there may be written anew."""
ATTEMPTS = 100
"""How often a directory that other processes replace at the same time is tried to be replaced."""


def unwritable(path: Path, error: OSError) -> ResultError:
    """The error that says that ``path`` cannot be written, and why."""
    for folder in path.parents:
        if folder.is_file():
            return ResultError(f"{named(path)}: {named(folder)} is a file; name another place")
    why = os.strerror(error.errno) if error.errno else str(error)
    return ResultError(f"{named(path)}: cannot be written: {why}; name another place or make room")


def replace_text(file: Path, text: str) -> None:
    """Write a file completely or not at all; raises :class:`ResultError` when it cannot be written."""
    replace_bytes(file, text.encode("utf-8", errors="backslashreplace"))


def replace_bytes(file: Path, content: bytes) -> None:
    """Write a file completely or not at all; raises :class:`ResultError` when it cannot be written."""
    with replacing(file) as stream:
        stream.write(content)


def replace_texts(folder: Path, texts: Mapping[str, str]) -> None:
    """Write files of ``folder``, each completely or not at all, and wait once for all of them to lie on the
    disk; raises :class:`ResultError` when one cannot be written."""
    parts = {folder / name: folder / leftovers.new_name() for name in texts}
    try:
        try:
            for file, part in parts.items():
                part.write_text(texts[file.name], encoding="utf-8", errors="backslashreplace", newline="")
            sync(*parts.values())
            for file, part in parts.items():
                part.replace(file)
            sync(folder)
        finally:
            for part in parts.values():
                part.unlink(missing_ok=True)
    except OSError as e:
        raise unwritable(next(iter(parts)), e) from None


@contextlib.contextmanager
def replacing(file: Path) -> Iterator[BinaryIO]:
    """A stream whose content becomes ``file`` when the block ends without an error; raises
    :class:`ResultError` when the file cannot be written."""
    file = real(file)
    part = file.with_name(leftovers.new_name())
    try:
        try:
            with part.open("xb") as stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
            part.replace(file)
            sync(file.parent)
        finally:
            part.unlink(missing_ok=True)
    except OSError as e:
        raise unwritable(file, e) from None


AT_ONCE = 64
"""Files that are open at a time while they are brought to the disk."""


Each = Callable[[Callable[[int], None], Sequence[int]], Iterable[None]]
"""Calls a function with each of some values: ``map``, or that of a pool of threads."""


def sync(*paths: Path, each: Each = map) -> None:
    """Wait until the content of files, and the names in directories, lie on the disk. All begin to be written
    before the first is waited for. Where threads wait for them (``each``), a file system writes all in one
    go; else it can take 4 ms for each."""
    for first in range(0, len(paths), AT_ONCE):
        handles: list[int] = []
        try:
            for path in paths[first : first + AT_ONCE]:
                handles.append(os.open(path, os.O_RDONLY))
                _begin_to_write(handles[-1])
            for _ in each(_sync, handles):
                pass
        finally:
            for handle in handles:
                os.close(handle)


def _sync(handle: int) -> None:
    try:
        os.fsync(handle)
    except OSError as e:
        if e.errno not in (errno.EINVAL, errno.ENOTSUP):  # file systems that cannot do it for directories
            raise


_SYNC_FILE_RANGE_WRITE = 2


def _begin_to_write(handle: int) -> None:
    """Make the system write a file without waiting for it, where it can do so."""
    with contextlib.suppress(AttributeError):
        begin = _libc().sync_file_range
        begin(handle, ctypes.c_int64(0), ctypes.c_int64(0), _SYNC_FILE_RANGE_WRITE)


@functools.cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def real(target: Path) -> Path:
    """The place that ``target`` means, links followed; raises :class:`ResultError` when nothing can be
    there."""
    try:
        found = target.resolve()
        _ = found.exists()
    except (OSError, RuntimeError, ValueError) as e:
        why = os.strerror(e.errno) if isinstance(e, OSError) and e.errno else str(e)
        raise ResultError(f"{named(target)}: no place for a result: {why}; name another directory") from None
    return found


@dataclass(frozen=True)
class Earlier:
    """How a directory is known that an earlier call has written, and that may be replaced as a whole."""

    index: str
    """A JSON file that it has."""
    entry: str
    """An entry of this file."""
    files: Sequence[str]
    """Patterns of the names of all other files."""

    def foreign(self, directory: Path) -> str | None:
        """A file of the directory that is none of ours; ``None`` where all are."""
        names = sorted(entry.name for entry in directory.iterdir())
        others = [n for n in names if not any(fnmatchcase(n, own) for own in (self.index, *self.files))]
        if names and not others:
            try:
                found = read_json(directory / self.index)
            except (OSError, ValueError, RecursionError):
                found = None
            if not isinstance(found, dict) or self.entry not in found:
                return self.index if self.index in names else names[0]
        return others[0] if others else None


def _check_is_ours(directory: Path, foreign: str | None) -> None:
    if os.path.ismount(directory):
        raise ResultError(f"{directory}: something is mounted there; name a directory in it")
    if foreign is not None:
        raise ResultError(
            f"{directory}: holds {named(Path(foreign))}, which Firstlight did not write; name a new directory"
        )


def check_target(target: Path, earlier: Earlier) -> None:
    """Raise :class:`ResultError` unless ``target`` is free, an empty directory, or one of this kind."""
    target = real(target)
    try:
        if target.exists() and not target.is_dir():
            raise ResultError(f"{target}: exists and is not a result; name a new directory")
        _check_is_ours(target, earlier.foreign(target) if target.is_dir() else None)
    except OSError as e:
        raise unwritable(target, e) from None


def claim(directory: Path, others: Sequence[str] = ()) -> None:
    """Make ``directory`` one of many results and mark it so.

    It may be new, empty, or marked by an earlier call. Where ``others`` are given it may hold anything but
    these. Raises :class:`ResultError` for any other directory.
    """
    directory = real(directory)
    mark = directory / MARK
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if not mark.is_file():
            # Another process may be marking it: its unfinished files are no obstacle, nor is a marked folder.
            names = [e.name for e in directory.iterdir() if not e.name.startswith(leftovers.PREFIX)]
            taken = [name for name in names if not others or name in others]
            if taken and mark.is_file():
                return
            _check_is_ours(directory, min(taken, default=None))
            # Another process may be faster. Nothing waits for the disk: the name gets there with the results.
            with contextlib.suppress(FileExistsError), mark.open("x") as stream:
                stream.write("Results of Firstlight: they may be written anew.\n")
    except OSError as e:
        raise unwritable(directory, e) from None


class Stored(Protocol):
    """Something that is stored as a directory."""

    def write(self, directory: Path) -> None:
        """Write the files into an existing directory."""


class Staging:
    """A temporary directory beside ``target`` that :meth:`commit` renames to ``target``; without a commit it
    is removed. What another process has stored there meanwhile stays if ``keep`` finds it good."""

    def __init__(self, target: Path, *, keep: Callable[[Path], bool] = lambda _: False) -> None:
        self.target = real(target)
        self.path = Path()
        self._keep = keep

    def __enter__(self) -> "Staging":
        parent = self.target.parent
        # Named before it is made: an interruption in between leaves nothing, and `with` knows of none yet.
        self.path = parent / leftovers.new_name()
        try:
            parent.mkdir(parents=True, exist_ok=True)
            self.path.mkdir(0o755)
        except OSError as e:
            raise unwritable(self.target, e) from None
        except BaseException:
            self.__exit__()
            raise
        return self

    def write(self, result: Stored) -> None:
        """Write ``result`` into the directory. Raises :class:`ResultError` when there is no room."""
        try:
            result.write(self.path)
        except OSError as e:
            raise unwritable(self.target, e) from None

    def commit(self, result: Stored) -> None:
        """Write ``result`` into the directory and rename it to ``target``; an earlier result there is
        removed. Raises :class:`ResultError` when there is no room."""
        self.write(result)
        commit_all([self])

    def replace(self) -> None:
        """Rename the directory to ``target``. Other processes may do the same at the same time."""
        for _ in range(ATTEMPTS):
            try:
                self.path.rename(self.target)
                return
            except OSError as e:
                if e.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
            if self._keep(self.target) or exchanged(self.path, self.target):
                return  # what is left here is removed on exit
            old = self.path.with_name(leftovers.new_name())
            with contextlib.suppress(FileNotFoundError):  # another process was faster
                self.target.rename(old)
            shutil.rmtree(old, ignore_errors=True)
        raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))

    def discard(self) -> None:
        """Remove the directory, unless it has become ``target``."""
        shutil.rmtree(self.path, ignore_errors=True)

    def __exit__(self, *_: object) -> None:
        self.discard()


def commit_all(written: Sequence[Staging], each: Each = map) -> None:
    """Bring directories that are written to the disk, in one go, then rename each to its target. Raises
    :class:`ResultError` when there is no room."""
    try:
        sync(*(path for staging in written for path in (staging.path, *staging.path.rglob("*"))), each=each)
        for staging in written:
            staging.replace()
        sync(*{staging.target.parent for staging in written})
    except OSError as e:
        raise unwritable(written[0].target, e) from None
    finally:
        for staging in written:
            staging.discard()


_AT_FDCWD = -100
_RENAME_EXCHANGE = 2


def exchanged(one: Path, other: Path) -> bool:
    """Exchange two directories in one step, so that at no moment either is missing; ``False`` where the file
    system cannot do it."""
    with contextlib.suppress(OSError, AttributeError):
        rename = _libc().renameat2
        return bool(rename(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE) == 0)
    return False
