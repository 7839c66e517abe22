"""One build of a kernel in a directory of its own: unpack, patch, configure, compile, boot once, store."""

import contextlib
import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from firstlight.errors import KernelError
from firstlight.linux import kernels, modules, selftest, sources
from firstlight.linux.commands import follow
from firstlight.linux.kernels import Kernel
from firstlight.linux.sources import Source

Say = Callable[[str], None]
Progress = Callable[[float], None]

UNUSED = (
    "*/Documentation/*/*",
    "*/arch/[a-t]*.[chS]",  # all but um and x86
    "*/arch/[a-t]*.dts",
    "*/arch/[a-t]*.dtsi",
    "*/tools/testing/*",
    "*/drivers/gpu/*.[ch]",
    "*/drivers/media/*.[ch]",
    "*/drivers/net/ethernet/*.[ch]",
    "*/drivers/net/wireless/*.[ch]",
    "*/drivers/staging/*.[ch]",
    "*/sound/*.[ch]",
)
"""Files of a tarball that our build does not read: half of all, slow to write and to remove."""
FIRST = {"CONFIG_NET_SCH_DUALPI2": (6, 17)}
"""The first versions that have an option of ours."""
OBJECTS = 740
"""About how many files are compiled; linking takes as long as the last few."""
UNPACKED, CONFIGURED, COMPILED = 0.06, 0.10, 0.97
"""Shares of the time that have passed after these steps."""
BY_STUB = ("processor.patch", "clock.patch", "orphans.patch", "calls.patch")
"""Our patches of kernels in which a program of its own, the stub, begins a process."""
LOG = "build.log"
PATCH = ("patch", "-p1", "--fuzz=0", "--batch", "--forward", "-i")
"""A command that applies a patch where it fits exactly."""


class BuildFailed(KernelError):
    """The sources do not build; others may."""


class PatchFailed(KernelError):
    """A patch of the user's does not fit."""


@dataclass(frozen=True)
class Order:
    """The kernel to build, and the settings of the build."""

    hz: int
    jobs: int
    force: bool
    say: Say
    progress: Progress
    patches: tuple[Path, ...] = ()
    """The user's own patches."""


class Workshop:
    """One build in the directory ``work``."""

    def __init__(self, order: Order, source: Source, work: Path) -> None:
        self.order = order
        self.source = source
        self.work = work
        self.log = work / LOG
        self.tree = work / "tree"
        self.linux = snapshot(work / "linux")
        self.patches = copies(order.patches, work)
        self.hash = kernels.source_hash(order.hz, self.linux, self.patches)
        self.version = ""

    def build(self) -> Kernel:
        """Build the kernel: all steps."""
        try:
            self.unpack()
            target = kernels.folder() / f"{self.version}-hz{self.order.hz}-{self.hash}"
            if (target / modules.TREE).exists() and not self.order.force:
                self.order.say(f"Linux {self.version} is built already")
                return kernels.read(target)
            self.order.say(
                f"building Linux {self.version} with a tick of {kernels.milliseconds(self.order.hz)}"
            )
            self.prepare()
            self.compile()
            return self.deliver(target)
        except (BuildFailed, PatchFailed) as e:
            raise type(e)(f"{e} (log: {self.keep_log()})") from None

    def unpack(self) -> None:
        """Unpack the source tree into our directory."""
        path = self.source.path
        assert path is not None, "a package is fetched before it is built"
        self.order.say(f"unpacking {self.source.title}")
        self.tree.mkdir()
        if path.is_dir():
            self.run("cp", "-a", "--reflink=auto", f"{path}/.", str(self.tree), inside=False)
        else:
            # A patch may be of any file.
            unused = [] if self.patches else [f"--exclude={pattern}" for pattern in UNUSED]
            self.run(
                *("tar", "xf", str(path), "-C", str(self.tree), "--strip-components=1", *unused), inside=False
            )
        self.order.progress(UNPACKED)
        self.version = sources.version_of(self.tree)
        sources.refuse_old(self.version)
        if path.is_dir():
            self.run(*self.make_command("mrproper"))

    def prepare(self) -> None:
        """Add our driver, patch and configuration to the tree."""
        ours = self.linux / "kernel"
        # Up to 6.12 there is no program that begins a process, which some patches need, and processors'
        # state is of a fixed size, which another one changes.
        begins = (self.tree / "arch/um/kernel/skas/stub_exe.c").is_file()
        by_age = BY_STUB if begins else ("registers.patch",)
        for name in ("firstlight.patch", "files.patch", *by_age):
            self.run(
                *PATCH,
                str(ours / name),
                failure=f"our patch does not fit Linux {self.version}",
            )
        for file in kernels.driver_sources(self.linux):
            if file.suffix in (".c", ".h"):
                shutil.copy(file, self.tree / "arch/um/drivers")
        # TCP and modules include it, too.
        shutil.copy(ours / "firstlight_stamps.h", self.tree / "include/net")
        for patch, copy in zip(self.order.patches, self.patches, strict=True):
            self.apply(patch, copy)
        fragment = self.work / "fragment"
        wanted = (ours / "kernel.config").read_text(encoding="utf-8") + f"CONFIG_HZ_{self.order.hz}=y\n"
        for option, version in FIRST.items():
            if kernels.number(self.version) < version:
                wanted = wanted.replace(f"{option}=y\n", "")
        fragment.write_text(wanted, encoding="utf-8")
        self.run(*self.make_command("tinyconfig"))
        self.run("bash", "scripts/kconfig/merge_config.sh", "-m", ".config", str(fragment))
        self.run(*self.make_command("olddefconfig"))
        taken = set((self.tree / ".config").read_text(encoding="utf-8").splitlines())
        if lost := [line for line in wanted.splitlines() if line.startswith("CONFIG_") and line not in taken]:
            raise BuildFailed(f"Linux {self.version} does not take {', '.join(lost)}")
        self.order.progress(CONFIGURED)

    def apply(self, patch: Path, copy: Path) -> None:
        """Apply a patch of the user's, named ``patch``."""
        lines: list[str] = []
        try:
            self.run(*PATCH, str(copy), on_line=lines.append)
        except BuildFailed:
            problem = misfit(lines)
            raise PatchFailed(
                f"{patch}: does not fit Linux {self.version}: {problem}; --source builds another version"
            ) from None

    def compile(self) -> None:
        """Compile the kernel and our modules."""
        compiled = 0

        def on_line(line: str) -> None:
            nonlocal compiled
            compiled += line.startswith("  CC ")
            share = min(compiled / OBJECTS, 1.0)
            self.order.progress(CONFIGURED + (COMPILED - CONFIGURED) * share)

        self.run(*self.make_command("linux"), on_line=on_line)
        self.modules = self.compile_modules()

    def compile_modules(self) -> list[Path]:
        """Make the tree ready for modules; compile ours, those of which the checkout has the sources."""
        shutil.copy(self.tree / "vmlinux.symvers", self.tree / "Module.symvers")
        self.run(*self.make_command("modules_prepare"))
        folders = [self.linux / name for name in kernels.OUR_MODULES if (self.linux / name).is_dir()]
        for folder in folders:
            self.run(*self.make_command(f"M={folder}", "modules"))
        return [folder / f"{folder.name}.ko" for folder in folders]

    def deliver(self, target: Path) -> Kernel:
        """Boot the kernel once, then put it into the cache."""
        place = self.work / "kernel"
        (place / kernels.MODULES).mkdir(parents=True)
        shutil.copy2(self.tree / "linux", place / kernels.BINARY)
        shutil.copy(self.tree / ".config", place / "config")
        modules.pack(self.tree, place / modules.TREE)
        for module in self.modules:
            self.run("strip", "--strip-debug", str(module))
            shutil.copy(module, place / kernels.MODULES)
        seccomp = self.first_boot(place / kernels.BINARY)
        shutil.copy(self.log, place / LOG)
        patched = [f for f in kernels.driver_sources(self.linux) if f.suffix != ".config"]
        manifest: dict[str, Any] = {
            "version": self.version,
            "hz": self.order.hz,
            "hash": self.hash,
            "patch": short_hash(*patched),
            "config": short_hash(place / "config"),
            "source": self.source.title,
            "seccomp": seccomp,
        }
        if self.patches:
            manifest["base"] = kernels.source_hash(self.order.hz, self.linux)
            manifest["patches"] = {
                patch.name: short_hash(copy)
                for patch, copy in zip(self.order.patches, self.patches, strict=True)
            }
        (place / kernels.MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
        if target.exists():
            os.replace(target, self.work / "replaced")
        os.replace(place, target)
        return kernels.read(target)

    def first_boot(self, binary: Path) -> bool:
        """Whether the kernel runs in seccomp mode; raises :class:`BuildFailed` when it runs in neither
        mode."""
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
        """The command ``make`` for User-Mode Linux."""
        return ["make", f"-j{self.order.jobs}", "ARCH=um", *what]

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
        """Copy the log to the directory of kernels."""
        name = self.version or re.sub(r"[^\w.-]", "-", Path(self.source.path or "source").name)
        kept = kernels.folder() / f"failed-{name}-hz{self.order.hz}.log"
        with contextlib.suppress(OSError):
            shutil.copy(self.log, kept)
        return kept


def first_words(command: Sequence[str]) -> str:
    """A command as a message names it."""
    return " ".join(word for word in command[:5] if not word.startswith(("-", "/")) and "=" not in word)


def short_hash(*files: Path) -> str:
    """Twelve hex digits that identify the contents of ``files``."""
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


def snapshot(place: Path) -> Path:
    """A copy of the files that we add to Linux, so that edits meanwhile do not change this build."""
    linux = kernels.folder_of_linux()
    for file in kernels.driver_sources(linux) + kernels.module_sources(linux):
        copy = place / file.relative_to(linux)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, copy)
    return place


def copies(patches: Sequence[Path], work: Path) -> tuple[Path, ...]:
    """Copies of patches, so that edits meanwhile do not change this build."""
    return tuple(Path(shutil.copy(patch, work / f"{number}.patch")) for number, patch in enumerate(patches))


def misfit(lines: Sequence[str]) -> str:
    """Why a patch does not fit, by what ``patch`` says: file, hunk and line."""
    file = "a file"
    for line in map(str.strip, lines):
        if line.startswith(("patching file ", "|+++ ")):
            file = line.split(" ")[-1] if line.startswith("p") else line.removeprefix("|+++ ")
        if line.startswith("Hunk ") and "FAILED" in line:
            return f"{file}: {line.rstrip('.')}"
        if line.startswith("No file to patch"):
            return f"there is no {file}"
        if line.startswith(("patch: ****", "Reversed (or previously")):
            return line.removeprefix("patch: **** ").rstrip(".: ")
    return "patch does not say why"
