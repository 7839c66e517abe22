"""The kernels in the cache, and those of the package ``firstlight-kernel``.

Each has a directory of its own, ``kernels/<version>-hz<HZ>-<hash>``, which appears when it is complete. The
hash is over all that we add to Linux, so that a kernel of an older checkout is not used by mistake.
"""

import contextlib
import hashlib
import importlib.util
import os
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from firstlight import folders
from firstlight.errors import KernelError
from firstlight.stored import read_json

TICKS = (100, 250, 1000)
"""Ticks per second that a kernel may have."""
MANIFEST = "kernel.json"
BINARY = "linux"
MODULES = "modules"
OUR_MODULES = ("dx", "retcp")
"""Folders in ``linux``, each with one module of the same name."""
TREE = "tree.tar.xz"
"""The part of a kernel's tree that a build of a module reads."""


@dataclass(frozen=True)
class Kernel:
    """One kernel in the cache."""

    path: Path
    version: str
    hz: int
    hash: str
    seccomp: bool
    """Whether it controls its processes by seccomp, which is faster than ptrace."""
    manifest: dict[str, Any] = field(repr=False, compare=False)

    @property
    def binary(self) -> Path:
        """The kernel, which is a program."""
        return self.path / BINARY

    @property
    def modules(self) -> Path:
        """Directory of its loadable modules."""
        return self.path / MODULES

    @property
    def tree(self) -> Path:
        """The archive that builds of modules for it read; a kernel of the package ``firstlight-kernel`` has
        none."""
        return self.path / TREE

    @property
    def is_current(self) -> bool:
        """Whether it is built from the sources of this checkout, with patches of the user's or without."""
        return bool(self.manifest.get("base", self.hash) == source_hash(self.hz))


def cache() -> Path:
    """The cache of kernels and their sources: ``FIRSTLIGHT_CACHE``, else the user's cache directory."""
    if named := os.environ.get("FIRSTLIGHT_CACHE"):
        return Path(named).absolute()
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base).absolute() / "firstlight"


def folder() -> Path:
    """The directory of built kernels."""
    return cache() / "kernels"


def folder_of_linux() -> Path:
    """The folder ``linux`` with the sources of our part of the kernel."""
    found = folders.folder("linux")
    if not (found / "kernel" / "firstlight.patch").is_file():
        raise KernelError(
            f"{found}: not the folder of our kernel sources; run from the checkout or set FIRSTLIGHT_LINUX"
        )
    return found


def driver_sources(linux: Path) -> list[Path]:
    """Our files that become a part of the kernel itself."""
    found = [f for f in (linux / "kernel").iterdir() if f.suffix in (".c", ".h", ".patch", ".config")]
    return sorted(found)


def module_sources(linux: Path) -> list[Path]:
    """The files of our modules; none of a module whose folder has no ``Kbuild``."""
    found = []
    for folder in (linux / name for name in OUR_MODULES):
        if (folder / "Kbuild").is_file():
            code = [f for f in folder.iterdir() if f.suffix in (".c", ".h")]
            ours = [f for f in code if "_bpf" not in f.name and not f.name.endswith(".mod.c")]
            found += [folder / "Kbuild", *ours]
    return sorted(found)


def source_hash(hz: int, linux: Path | None = None, patches: Sequence[Path] = ()) -> str:
    """Twelve hex digits that identify all files that we add to Linux, and patches of the user's."""
    linux = linux or folder_of_linux()
    digest = hashlib.sha256(f"hz {hz}\n".encode())
    for file in driver_sources(linux) + module_sources(linux):
        content = file.read_bytes()
        digest.update(f"{file.relative_to(linux)} {len(content)}\n".encode())
        digest.update(content)
    for patch in patches:
        digest.update(f"patch {patch.stat().st_size}\n".encode())
        digest.update(patch.read_bytes())
    return digest.hexdigest()[:12]


def built() -> list[Kernel]:
    """All kernels of both places, newest version first, without those of :func:`broken`."""
    found = []
    for path in _folders():
        with contextlib.suppress(KernelError):
            found.append(read(path))
    return sorted(
        found, key=lambda k: (number(k.version), k.version, -k.hz, k.hash, k.tree.is_file()), reverse=True
    )


def broken() -> list[str]:
    """The problems of kernels whose description cannot be read."""
    problems = []
    for path in _folders():
        try:
            read(path)
        except KernelError as e:
            problems.append(str(e))
    return problems


def _folders() -> list[Path]:
    """Directories of kernels: in the cache, and in the package ``firstlight-kernel`` if it is installed."""
    places = [folder()]
    package = importlib.util.find_spec("firstlight_kernel")
    if package is not None and package.origin is not None:
        places.append(Path(package.origin).parent / "kernels")
    return sorted(f.parent for place in places for f in place.glob(f"[!.]*/{MANIFEST}"))


def read(path: Path) -> Kernel:
    """The kernel in the directory ``path``."""
    file = path / MANIFEST
    try:
        manifest = read_json(file)
        return Kernel(
            path,
            str(manifest["version"]),
            int(manifest["hz"]),
            str(manifest["hash"]),
            bool(manifest["seccomp"]),
            manifest,
        )
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as e:
        raise KernelError(
            f"{file}: not a kernel's description ({e}); remove {path} and build again"
        ) from None


def find(hz: int, version: str = "", patches: Sequence[Path] = ()) -> Kernel:
    """The newest kernel of ``hz`` ticks per second (and of ``version``, unless that is empty) that is built
    from the sources of this checkout and these patches of the user's."""
    if hz not in TICKS:
        raise KernelError(
            f"no kernel can tick every {milliseconds(hz)}; Linux hosts need tcp.tick = 1ms, 4ms or 10ms"
        )
    words = [f"--source {version}"] if version else []
    words += [f"--patch {shlex.quote(str(patch))}" for patch in patches]
    build = f"`{' '.join(['firstlight kernel build --hz', str(hz), *words])}`"
    same = [k for k in built() if k.hz == hz and is_of(k.version, version)]
    wanted = source_hash(hz, patches=patches)
    if patches:
        same = [k for k in same if k.hash == wanted]
    which = f"a tick of {milliseconds(hz)}" + (f" and version {version}" if version else "")
    which += f" and the patches {', '.join(patch.name for patch in patches)}" if patches else ""
    if not same and (problems := broken()):
        raise KernelError(problems[0])
    if not same:
        raise KernelError(f"no kernel with {which} is built: run {build} (about 5 minutes, once)")
    for kernel in same:
        if kernel.hash == wanted:
            if not os.access(kernel.binary, os.X_OK):
                raise KernelError(f"{kernel.binary}: missing or not executable; run {build} --force")
            return kernel
    raise KernelError(
        f"the kernel with {which} is built from other sources ({same[0].hash}, those of this checkout are "
        f"{wanted}): run {build} again (about 5 minutes)"
    )


def milliseconds(hz: int) -> str:
    """``4 ms`` for 250."""
    return f"{1000 / hz:g} ms" if hz > 0 else "never"


def is_of(version: str, series: str) -> bool:
    """Whether ``version`` is of a series: 6.12.117 is of 6.12, and every version is of an empty series."""
    wanted = number(series)
    return number(version)[: len(wanted)] == wanted


def number(version: str) -> tuple[int, ...]:
    """``6.12.117-1~deb12u1`` -> ``(6, 12, 117, 1)``, by which versions are compared."""
    return tuple(int(part) for part in re.findall(r"\d+", version.split("~")[0])[:4])
