"""Builds a kernel: sources, our driver and patch, configuration, make, a first boot, the cache.

All happens in a directory of its own beside the cache's, which is removed whatever comes; the kernel's
directory appears complete or not at all. Only the log of a build that failed is kept.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from firstlight.errors import KernelError
from firstlight.linux import kernels, selftest, sources, tools
from firstlight.linux.kernels import Kernel
from firstlight.linux.sources import Source

Say = Callable[[str], None]
Progress = Callable[[float], None]

NEEDED_BYTES = 3_000_000_000
"""An unpacked tree (1.7 GB), what is compiled, a package on its way to the cache."""
OBJECTS = 680
"""How many files are compiled, about; linking takes as long as the last few."""
UNPACKED, CONFIGURED, COMPILED = 0.06, 0.10, 0.98
"""Shares of the time after these steps."""
TROUBLE = re.compile(r"\berror:|^make.*\*\*\*|: not found|No space left")
"""Lines of a build that say why it failed."""
WORK = ".building-"
LOG = "build.log"
REPEATABLE = {
    "KBUILD_BUILD_TIMESTAMP": "@0",
    "KBUILD_BUILD_USER": "firstlight",
    "KBUILD_BUILD_HOST": "firstlight",
    "KBUILD_BUILD_VERSION": "1",
    "LC_ALL": "C",
}
"""The kernel's version string is one of its sources of randomness."""


class BuildFailed(KernelError):
    """These sources do not build; others may."""


def build(
    source: str = "auto",
    hz: int = 250,
    jobs: int | None = None,
    force: bool = False,
    say: Say = print,
    progress: Progress = lambda _: None,
) -> Kernel:
    """The kernel of ``hz`` ticks per second, built unless it is there already."""
    if hz not in kernels.TICKS:
        raise KernelError(f"--hz {hz}: one of {', '.join(map(str, kernels.TICKS))} is needed")
    if source == "auto" and not force:
        wanted = kernels.source_hash(hz)
        for kernel in kernels.built():
            if kernel.hash == wanted and kernel.hz == hz:
                say(f"Linux {kernel.version} with a tick of {kernels.milliseconds(hz)} is built already")
                return kernel
    tools.require()
    with only_builder(say), ended_by_signals():
        maker = Maker(hz, jobs or os.cpu_count() or 1, force, say, progress)
        if source == "auto":
            return newest_that_works(maker, say)
        return maker.make(sources.named(source))


def newest_that_works(maker: "Maker", say: Say) -> Kernel:
    """Build the newest source that builds: of those that are kept, else of the archive."""
    tried = set()
    for candidate in sources.kept():
        tried.add((candidate.package, candidate.version))
        with told(candidate, say):
            return maker.make(candidate)
    say("asking the system's package archive for sources")
    with sources.private_apt() as apt:
        for candidate in sources.candidates(apt):
            if (candidate.package, candidate.version) in tried:
                continue
            with told(candidate, say):
                say(f"downloading {candidate.title} (about 160 MB)")
                return maker.make(sources.fetch(apt, candidate))
    why = "none of the sources builds" if tried else "the archive has no linux-source package from 6.12 on"
    raise KernelError(f"{why}: {sources.elsewhere()}")


@contextlib.contextmanager
def told(candidate: Source, say: Say) -> Iterator[None]:
    """A source that does not build is told of, and the next is tried."""
    try:
        yield
    except BuildFailed as e:
        say(f"{candidate.title} does not work, trying an older one: {e}")


@dataclass
class Maker:
    """How a kernel is to be made."""

    hz: int
    jobs: int
    force: bool
    say: Say
    progress: Progress

    def make(self, source: Source) -> Kernel:
        """Build ``source`` into the cache."""
        if source.version:
            sources.refuse_old(source.version)
        require_space(kernels.folder())
        with tempfile.TemporaryDirectory(
            prefix=WORK, dir=kernels.folder(), ignore_cleanup_errors=True
        ) as work:
            return Workshop(self, source, Path(work)).build()


class Workshop:
    """One build in its directory ``work``."""

    def __init__(self, maker: Maker, source: Source, work: Path) -> None:
        self.maker = maker
        self.source = source
        self.work = work
        self.log = work / LOG
        self.tree = work / "tree"
        self.linux = snapshot(work / "linux")
        self.hash = kernels.source_hash(maker.hz, self.linux)
        self.version = ""

    def build(self) -> Kernel:
        """All steps."""
        try:
            self.unpack()
            target = kernels.folder() / f"{self.version}-hz{self.maker.hz}-{self.hash}"
            if target.exists() and not self.maker.force:
                self.maker.say(f"Linux {self.version} is built already")
                return kernels.read(target)
            self.maker.say(
                f"building Linux {self.version} with a tick of {kernels.milliseconds(self.maker.hz)}"
            )
            self.prepare()
            self.compile()
            return self.deliver(target)
        except BuildFailed as e:
            raise BuildFailed(f"{e} (log: {self.keep_log()})") from None

    def unpack(self) -> None:
        """The source tree in our directory."""
        path = self.source.path
        assert path is not None, "a package is fetched before it is built"
        self.tree.mkdir()
        if path.is_dir():
            self.run("cp", "-a", "--reflink=auto", f"{path}/.", str(self.tree), inside=False)
        else:
            self.run("tar", "xf", str(path), "-C", str(self.tree), "--strip-components=1", inside=False)
        self.maker.progress(UNPACKED)
        self.version = sources.version_of(self.tree)
        sources.refuse_old(self.version)
        if path.is_dir():
            self.run(*self.make_command("mrproper"))

    def prepare(self) -> None:
        """Our driver, patch and configuration in the tree."""
        ours = self.linux / "kernel"
        self.run(
            *("patch", "-p1", "--fuzz=0", "--batch", "--forward", "-i", str(ours / "firstlight.patch")),
            failure=f"our patch does not fit Linux {self.version}",
        )
        for file in kernels.driver_sources(self.linux):
            if file.suffix in (".c", ".h"):
                shutil.copy(file, self.tree / "arch/um/drivers")
        fragment = self.work / "fragment"
        wanted = (ours / "kernel.config").read_text(encoding="utf-8") + f"CONFIG_HZ_{self.maker.hz}=y\n"
        fragment.write_text(wanted, encoding="utf-8")
        self.run(*self.make_command("tinyconfig"))
        self.run("bash", "scripts/kconfig/merge_config.sh", "-m", ".config", str(fragment))
        self.run(*self.make_command("olddefconfig"))
        taken = set((self.tree / ".config").read_text(encoding="utf-8").splitlines())
        if lost := [line for line in wanted.splitlines() if line.startswith("CONFIG_") and line not in taken]:
            raise BuildFailed(f"Linux {self.version} does not take {', '.join(lost)}")
        self.maker.progress(CONFIGURED)

    def compile(self) -> None:
        """The kernel and reTCP's module."""
        compiled = 0

        def on_line(line: str) -> None:
            nonlocal compiled
            compiled += line.startswith("  CC ")
            share = min(compiled / OBJECTS, 1.0)
            self.maker.progress(CONFIGURED + (COMPILED - CONFIGURED) * share)

        self.run(*self.make_command("linux"), on_line=on_line)
        self.module = self.compile_module()

    def compile_module(self) -> Path | None:
        """``retcp.ko``, when the checkout has its sources."""
        folder = self.linux / "retcp"
        if not folder.is_dir():
            return None
        shutil.copy(self.tree / "vmlinux.symvers", self.tree / "Module.symvers")
        self.run(*self.make_command("modules_prepare"))
        self.run(*self.make_command(f"M={folder}", "modules"))
        return folder / "retcp.ko"

    def deliver(self, target: Path) -> Kernel:
        """Try the kernel, then put it into the cache."""
        place = self.work / "kernel"
        (place / kernels.MODULES).mkdir(parents=True)
        shutil.copy2(self.tree / "linux", place / kernels.BINARY)
        shutil.copy(self.tree / ".config", place / "config")
        if self.module:
            self.run("strip", "--strip-debug", str(self.module))
            shutil.copy(self.module, place / kernels.MODULES)
        seccomp = self.first_boot(place / kernels.BINARY)
        shutil.copy(self.log, place / LOG)
        patched = [f for f in kernels.driver_sources(self.linux) if f.suffix != ".config"]
        manifest = {
            "version": self.version,
            "hz": self.maker.hz,
            "hash": self.hash,
            "patch": short_hash(*patched),
            "config": short_hash(place / "config"),
            "source": self.source.title,
            "seccomp": seccomp,
        }
        (place / kernels.MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
        if target.exists():
            os.replace(target, self.work / "replaced")
        os.replace(place, target)
        self.maker.progress(1.0)
        return kernels.read(target)

    def first_boot(self, binary: Path) -> bool:
        """Whether the kernel runs in seccomp mode; raises when it runs in neither."""
        modes = (True, False) if kernels.number(self.version) >= selftest.FIRST_SECCOMP else (False,)
        for seccomp in modes:
            problem = selftest.boot(binary, seccomp)
            with self.log.open("a", encoding="utf-8") as log:
                log.write(f"\nfirst boot, {'seccomp' if seccomp else 'ptrace'}: {problem or 'works'}\n")
            if not problem:
                return seccomp
        raise BuildFailed(f"Linux {self.version} is built but does not start: {problem}")

    # ---- commands ----

    def make_command(self, *what: str) -> list[str]:
        """make, for User-Mode Linux."""
        return ["make", f"-j{self.maker.jobs}", "ARCH=um", *what]

    def run(
        self,
        *command: str,
        inside: bool = True,
        failure: str = "",
        on_line: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Run a command, in the tree or beside it; its output goes to the log."""
        with self.log.open("a", encoding="utf-8") as log:
            log.write(f"$ {' '.join(command)}\n")
            log.flush()
            code, last = follow(command, self.tree if inside else self.work, log.write, on_line)
        if code != 0:
            raise BuildFailed(failure or f"{first_words(command)} failed{last and f': {last}'}")

    def keep_log(self) -> Path:
        """Put the log where it stays."""
        name = self.version or re.sub(r"[^\w.-]", "-", Path(self.source.path or "source").name)
        kept = kernels.folder() / f"failed-{name}-hz{self.maker.hz}.log"
        with contextlib.suppress(OSError):
            shutil.copy(self.log, kept)
        return kept


def follow(
    command: Sequence[str], folder: Path, write: Callable[[str], object], on_line: Callable[[str], None]
) -> tuple[int, str]:
    """Run ``command`` in a group of its own, which ends with us: its code and its first error line."""
    process = subprocess.Popen(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=environment(),
        start_new_session=True,
    )
    problem = ""
    with process:
        try:
            assert process.stdout is not None
            for line in process.stdout:
                write(line)
                on_line(line)
                if not problem and TROUBLE.search(line):
                    problem = line.strip()
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    return process.returncode, problem


def environment() -> dict[str, str]:
    """Ours without what would turn the build: a make that we run under, cross compilers, flags."""
    turning = re.compile(
        r"MAKE|MFLAGS|KBUILD|KCONFIG|KCFLAGS|ARCH$|CROSS_COMPILE|[A-Z]*FLAGS$|[OVCM]$|INSTALL_|LD_PRELOAD"
    )
    kept = {k: v for k, v in os.environ.items() if not turning.match(k)}
    return {**kept, **REPEATABLE, "PATH": tools.PATH}


def first_words(command: Sequence[str]) -> str:
    """A command as a message names it."""
    return " ".join(word for word in command[:5] if not word.startswith(("-", "/")) and "=" not in word)


def short_hash(*files: Path) -> str:
    """Twelve digits for the contents of ``files``."""
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


def snapshot(place: Path) -> Path:
    """A copy of what we add to Linux, so that who edits it meanwhile does not change this build."""
    linux = kernels.folder_of_linux()
    for file in kernels.driver_sources(linux) + kernels.module_sources(linux):
        copy = place / file.relative_to(linux)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, copy)
    return place


def require_space(folder: Path) -> None:
    """Raise when a build would fill the disk."""
    folder.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(folder).free
    if free < NEEDED_BYTES:
        raise KernelError(
            f"{folder}: {free / 1e9:.1f} GB are free, a build needs {NEEDED_BYTES / 1e9:.0f} GB for a while; "
            "make room or set FIRSTLIGHT_CACHE to a directory on another disk"
        )


@contextlib.contextmanager
def only_builder(say: Say) -> Iterator[None]:
    """One build at a time; the directories of builds that were killed are removed."""
    kernels.folder().mkdir(parents=True, exist_ok=True)
    with (kernels.folder() / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another build is under way: waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        for leftover in (*kernels.folder().glob(f"{WORK}*"), *kernels.cache().glob(".apt-*")):
            shutil.rmtree(leftover, ignore_errors=True)
        yield


@contextlib.contextmanager
def ended_by_signals() -> Iterator[None]:
    """A request to end (SIGTERM, SIGHUP) cleans up as Ctrl-C does."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def on_signal(number: int, _: object) -> None:
        raise KeyboardInterrupt

    before = {s: signal.signal(s, on_signal) for s in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
