"""The content of the cache (built kernels, sources, modules, programs for tests), and its clearing."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from firstlight.errors import PlanError
from firstlight.linux import kernels, modules
from firstlight.linux.build import only_builder
from firstlight.linux.directory import PREFIX, clear_leftovers
from firstlight.linux.workplaces import WORK, only_one

LEFTOVERS = "leftovers"
"""Leftovers of builds and runs that were killed."""


@dataclass(frozen=True)
class Entry:
    """A file or directory of the cache."""

    group: str
    path: Path
    size: int
    """Bytes on the disk."""


def contents() -> list[Entry]:
    """All that the cache holds, by group: the folders of the cache, and leftovers."""
    found = []
    cache = kernels.cache()
    for folder in sorted(cache.iterdir()) if cache.is_dir() else []:
        if folder.is_dir() and not folder.name.startswith("."):
            entries = (path for path in sorted(folder.iterdir()) if not path.name.startswith("."))
            found += [Entry(folder.name, path, size_of(path)) for path in entries]
    return found + [Entry(LEFTOVERS, path, size_of(path)) for path in leftovers()]


def leftovers() -> Iterator[Path]:
    """Directories of builds and runs, of live ones too."""
    yield from kernels.cache().glob(f"*/{WORK}*")
    yield from kernels.cache().glob(".apt-*")
    for place in run_places():
        yield from place.glob(f"{PREFIX}*")


def run_places() -> list[Path]:
    """The folder of directories of runs on Linux hosts."""
    places = (Path("/dev/shm"), Path("/run/shm"), Path(tempfile.gettempdir()))
    return [place for place in dict.fromkeys(p.resolve() for p in places) if place.is_dir()]


def size_of(path: Path) -> int:
    """Bytes that a file or a directory takes on the disk."""
    if not path.is_dir() or path.is_symlink():
        return path.lstat().st_blocks * 512
    files = (Path(folder, name) for folder, _, names in os.walk(path) for name in names)
    return sum(file.lstat().st_blocks * 512 for file in files if os.path.lexists(file))


def clear(group: str) -> int:
    """Remove a group; return how many bytes that made free. Builds and runs that go on are left alone. Raises
    :class:`PlanError` when there is no such group."""
    groups = {entry.group for entry in contents()}
    if group not in groups | {LEFTOVERS}:
        known = ", ".join(sorted(groups | {LEFTOVERS}))
        raise PlanError(f"the cache {kernels.cache()} holds no {group!r}: write one of {known}")
    before = sum(entry.size for entry in contents() if entry.group == group)
    # These remove what killed builds have left.
    with only_builder(lambda _: None), only_one(modules.folder()):
        if group == LEFTOVERS:
            for place in run_places():
                clear_leftovers(place)
        else:
            for entry in contents():
                if entry.group == group:
                    shutil.rmtree(entry.path) if entry.path.is_dir() else entry.path.unlink()
    return before - sum(entry.size for entry in contents() if entry.group == group)
