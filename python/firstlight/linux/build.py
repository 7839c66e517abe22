"""Builds a kernel into the cache: chooses the sources, allows one build at a time, and leaves nothing
half-made.

A build has a directory of its own beside the kernels (:mod:`firstlight.linux.workshop`), which is removed in
any case. The kernel's directory appears complete or not at all. Only the log of a failed build is kept.
"""

import contextlib
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from firstlight.core import Spec
from firstlight.errors import KernelError
from firstlight.linux import installed, kernels, own_code, sources, tools
from firstlight.linux.kernels import Kernel
from firstlight.linux.sources import Source
from firstlight.linux.workplaces import only_one, workplace
from firstlight.linux.workshop import BuildFailed, Order, Progress, Say, Workshop

NEEDED_BYTES = 2_000_000_000
"""Disk space of a build: a whole tree that the user names (1.7 GB), or half a tree that is unpacked, and the
compiled files."""


def build(
    source: str = "auto",
    hz: int = 250,
    jobs: int | None = None,
    force: bool = False,
    say: Say = print,
    progress: Progress = lambda _: None,
    patches: Sequence[Path] = (),
) -> Kernel:
    """The kernel of ``hz`` ticks per second with these patches of the user's, built unless it exists."""
    if hz not in kernels.TICKS:
        raise KernelError(f"--hz {hz}: one of {', '.join(map(str, kernels.TICKS))} is needed")
    for patch in patches:
        if not patch.is_file():
            raise KernelError(f"--patch {patch}: is no file; name a patch")
    series = "" if source == "auto" else source if sources.VERSION.fullmatch(source) else None
    if series:
        sources.refuse_old(series)
    if series is not None and not force:
        wanted = kernels.source_hash(hz, patches=patches)
        for kernel in kernels.built():
            same = kernel.hash == wanted and kernel.hz == hz and kernels.is_of(kernel.version, series)
            if same and kernel.tree.is_file():
                say(f"Linux {kernel.version} with a tick of {kernels.milliseconds(hz)} is built already")
                return kernel
    tools.require()
    with cache_errors(), only_builder(say):
        order = Order(hz, jobs or os.cpu_count() or 1, force, say, progress, tuple(patches))
        if series is not None:
            return newest_that_works(order, series)
        return make(order, sources.named(source))


def newest_that_works(order: Order, series: str) -> Kernel:
    """Build the newest source that builds: first of those in the cache, then of the archive; if ``series`` is
    not empty, only of that version."""
    tried: set[tuple[str, str]] = set()
    for candidate in (s for s in sources.kept() if kernels.is_of(s.version, series)):
        tried.add((candidate.package, candidate.version))
        with reported(candidate, order.say):
            return make(order, candidate)
    order.say("asking the system's package archive for sources")
    with sources.private_apt() as apt:
        for candidate in sources.candidates(apt):
            key = (candidate.package, candidate.version)
            if key in tried or not kernels.is_of(candidate.version, series):
                continue
            with reported(candidate, order.say):
                order.say(f"downloading {candidate.title} (about 160 MB)")
                return make(order, sources.fetch(apt, candidate))
    which = f"linux-source package of version {series}" if series else "linux-source package from 6.12 on"
    why = "none of the sources builds" if tried else f"the archive has no {which}"
    raise KernelError(f"{why}: {sources.elsewhere()}")


@contextlib.contextmanager
def reported(candidate: Source, say: Say) -> Iterator[None]:
    """Report a source that does not build, so that the next one is tried."""
    try:
        yield
    except BuildFailed as e:
        say(f"{candidate.title} does not work, trying an older one: {e}")


def make(order: Order, source: Source) -> Kernel:
    """Build ``source`` into the cache."""
    if source.version:
        sources.refuse_old(source.version)
    require_space(kernels.folder())
    with workplace(kernels.folder(), order.say) as work:
        kernel = Workshop(order, source, work).build()
    order.progress(1.0)
    return kernel


def require_space(folder: Path) -> None:
    """Raise :class:`KernelError` when a build would fill the disk."""
    folder.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(folder).free
    if free < NEEDED_BYTES:
        raise KernelError(
            f"{folder}: {free / 1e9:.1f} GB are free, a build needs {NEEDED_BYTES / 1e9:.0f} GB for a while; "
            "make room or set FIRSTLIGHT_CACHE to a directory on another disk"
        )


@contextlib.contextmanager
def cache_errors() -> Iterator[None]:
    """An error of the file system becomes one that names the cache, and how to have another one."""
    try:
        yield
    except OSError as e:
        place = e.filename or kernels.cache()
        raise KernelError(
            f"{place}: {e.strerror or e}: make room or set FIRSTLIGHT_CACHE to another directory"
        ) from None


@contextlib.contextmanager
def only_builder(say: Say) -> Iterator[None]:
    """Hold the lock that allows one build of a kernel at a time; remove what killed ones have left."""
    with only_one(kernels.folder(), say):
        for leftover in kernels.cache().glob(".apt-*"):
            shutil.rmtree(leftover, ignore_errors=True)
        yield


def wanted_by(path: str) -> tuple[str, str, tuple[Path, ...]]:
    """The source, the ticks per second and the patches of the kernel that the experiment in ``path`` runs
    on."""
    experiment = Spec.read(path, sweep=True).check()
    resolved = experiment.resolved
    if not installed.has_linux_hosts(resolved) or installed.is_dilated(resolved):
        raise KernelError(f"{path}: no kernel is built for it: it has no Linux hosts in virtual time")
    version = resolved.get("linux", {}).get("version", "auto")
    return version, str(installed.hz_of(resolved)), tuple(own_code.patches(experiment))
