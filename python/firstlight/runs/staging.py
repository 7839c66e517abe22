"""Writes files and directories completely or not at all, and only where they belong."""

import contextlib
import ctypes
import errno
import functools
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO, Protocol

from firstlight.core import named
from firstlight.errors import ResultError
from firstlight.runs import leftovers

MARK = ".firstlight"
"""A file that marks a directory of results: what Firstlight wrote there may be written anew."""
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


def check_target(target: Path, mark: str) -> None:
    """Raise :class:`ResultError` unless ``target`` is free, an empty directory, or an earlier result, which
    has a file ``mark``."""
    target = real(target)
    if os.path.ismount(target):
        raise ResultError(f"{target}: something is mounted there; name a directory in it")
    try:
        if target.is_dir() and ((target / mark).is_file() or not any(target.iterdir())):
            return
    except OSError as e:
        raise unwritable(target, e) from None
    if target.exists():
        raise ResultError(f"{target}: exists and is not a result; name a new directory")


def claim(directory: Path, index: str, files: Sequence[str] = ()) -> None:
    """Make ``directory`` one of many results and mark it so.

    It may be new, empty, or marked by an earlier call or by the file ``index``. Where ``files`` are given it
    may hold anything but these. Raises :class:`ResultError` for any other directory.
    """
    directory = real(directory)

    def marked() -> bool:
        return any((directory / mark).is_file() for mark in (MARK, index))

    try:
        directory.mkdir(parents=True, exist_ok=True)
        if not marked():
            # Another process may be marking it: its unfinished files are no obstacle, nor is a marked folder.
            names = [e.name for e in directory.iterdir() if not e.name.startswith(leftovers.PREFIX)]
            taken = [name for name in names if not files or name in files]
            if taken and marked():
                return
            if taken:
                raise ResultError(
                    f"{directory}: holds {min(taken)}, which Firstlight did not write; name a new directory"
                )
            # Another process may be faster. Nothing waits for the disk: the name gets there with the results.
            with contextlib.suppress(FileExistsError), (directory / MARK).open("x") as mark:
                mark.write(f"Results of Firstlight ({index}): they may be written anew.\n")
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
