"""Checks what this machine can run; for what it cannot run, why and what to do."""

import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from firstlight import core
from firstlight.errors import FirstlightError
from firstlight.linux import hadoop, installed, kernels, selftest, tools

SIMULATED = "simulated hosts"
VIRTUAL = "Linux hosts, virtual time"
STRUCT_OPS = "reTCP on this kernel (BPF)"
HDFS = "HDFS on Linux hosts"
RUN_MEMORY = 1_000_000_000
"""Bytes that one run needs, of memory and of a file system in memory."""


@dataclass(frozen=True)
class Check:
    """A condition of a way of running."""

    way: str
    name: str
    ok: bool
    found: str
    todo: str = ""
    needed: bool = True
    """Whether the way of running does not work without it."""


def examine() -> list[Check]:
    """All checks of simulated hosts and of Linux hosts in virtual time."""
    return [*simulated(), *virtual(), *hdfs(), *struct_ops()]


def able(checks: list[Check]) -> dict[str, bool]:
    """Whether each way of running works here."""
    ways = dict.fromkeys(check.way for check in checks)
    return {way: all(c.ok for c in checks if c.way == way and c.needed) for way in ways}


def as_json(checks: list[Check]) -> dict[str, Any]:
    """The checks as ``--json`` prints them."""
    return {"able": able(checks), "checks": [asdict(check) for check in checks]}


def simulated() -> Iterator[Check]:
    """The engine: without it this package could not be imported."""
    yield Check(SIMULATED, "engine", True, f"version {core.version()}, {os.cpu_count()} processors")


# ---- Virtual time ----


def virtual() -> Iterator[Check]:
    """Conditions of a kernel in virtual time."""
    machine = platform.machine()
    right = sys.platform == "linux" and machine == "x86_64"
    yield Check(
        VIRTUAL, "machine", right, f"{sys.platform} {machine}", "" if right else "Linux on x86_64 is needed"
    )
    yield kernel()
    for problem in kernels.broken():
        found, _, todo = problem.partition("; ")
        yield Check(VIRTUAL, "damaged kernel", False, found, todo, needed=False)
    yield dx()
    yield build_tools()
    for name, file in (("engine for kernels", installed.ENGINE), ("guest program", installed.GUEST)):
        there = file.is_file()
        yield Check(
            VIRTUAL,
            name,
            there,
            file.name if there else "missing",
            "" if there else "make setup in a checkout",
        )
    yield processes()
    yield cpuid()
    yield memory()
    yield shared_memory()
    yield routes()
    if "avx512f" in _read("/proc/cpuinfo"):
        yield Check(
            VIRTUAL, "AVX-512", True, "present: kernels older than 6.12 would not run here", needed=False
        )


def kernel() -> Check:
    """A built kernel, for the usual tick or for another one."""
    build = "firstlight kernel build"
    usable, problem = [], ""
    for hz in kernels.TICKS:
        try:
            usable.append(kernels.find(hz))
        except FirstlightError as e:
            problem = problem if hz != 250 and problem else str(e)
    if not usable:
        return Check(VIRTUAL, "kernel", False, problem.split(": run ")[0], f"{build} (about 5 minutes, once)")
    found = ", ".join(f"{k.version} ({kernels.milliseconds(k.hz)} tick)" for k in usable)
    usual = any(k.hz == 250 for k in usable)
    return Check(VIRTUAL, "kernel", True, found, "" if usual else f"{build} for the usual tick of 4 ms")


def dx() -> Check:
    """Whether the kernels have DX (``tcp.cc = "dx"``): its module, and the stack that stamps its packets."""
    found = sorted({k.version for k in kernels.built() if k.is_current and (k.modules / "dx.ko").is_file()})
    if found:
        return Check(VIRTUAL, "DX", True, f"in Linux {', '.join(found)}", needed=False)
    return Check(
        VIRTUAL, "DX", False, "in no kernel of this version", "firstlight kernel build", needed=False
    )


def build_tools() -> Check:
    """The tools that build a kernel."""
    lacking = tools.missing()
    if not lacking:
        return Check(VIRTUAL, "tools to build kernels", True, "all there", needed=False)
    todo = tools.install(lacking.values())
    return Check(
        VIRTUAL, "tools to build kernels", False, f"missing: {', '.join(lacking)}", todo, needed=False
    )


def processes() -> Check:
    """Whether a kernel may control its processes, best tried by booting one."""
    name = "seccomp or ptrace"
    if found := kernels.built():
        newest = found[0]
        problem = selftest.boot(newest.binary, newest.seccomp)
        mode = "seccomp" if newest.seccomp else "ptrace"
        if not problem:
            return Check(VIRTUAL, name, True, f"Linux {newest.version} starts ({mode})")
        todo = "firstlight kernel build --force finds out which mode works; containers must permit ptrace"
        return Check(VIRTUAL, name, False, f"Linux {newest.version} does not start ({mode}): {problem}", todo)
    seccomp = "trap" in _read("/proc/sys/kernel/seccomp/actions_avail").split()
    ptrace = may_ptrace()
    found_text = f"seccomp {'yes' if seccomp else 'no'}, ptrace {'yes' if ptrace else 'no'}"
    todo = "" if seccomp or ptrace else "let the container trace its processes (such as --cap-add SYS_PTRACE)"
    return Check(VIRTUAL, name, seccomp or ptrace, found_text, todo)


def may_ptrace() -> bool:
    """Whether a process may ask to be traced by its parent."""
    done = subprocess.run(
        [
            sys.executable,
            "-I",
            "-S",
            "-c",
            "import ctypes, sys; sys.exit(ctypes.CDLL(None).ptrace(0, 0, 0, 0) != 0)",
        ],
        check=False,
    )
    return done.returncode == 0


def cpuid() -> Check:
    """Whether programs can be kept from seeing this machine's processor."""
    traps = traps_cpuid()
    found = "can be trapped" if traps else "cannot be trapped: programs see this machine's processor"
    todo = "" if traps else "a machine with cpuid_fault in /proc/cpuinfo, where results must not depend on it"
    return Check(VIRTUAL, "CPUID", traps, found, todo, needed=False)


def traps_cpuid() -> bool:
    """Whether this machine can make CPUID fault."""
    flags = re.search(r"^flags\s*:(.*)$", _read("/proc/cpuinfo"), re.MULTILINE)
    return flags is not None and "cpuid_fault" in flags[1].split()


def memory() -> Check:
    """The machine's free memory."""
    lines = dict(line.split(":", 1) for line in _read("/proc/meminfo").splitlines() if ":" in line)
    available = int(lines.get("MemAvailable", "0 kB").split()[0]) * 1024
    enough = available >= RUN_MEMORY
    return Check(
        VIRTUAL, "memory", enough, gigabytes(available), "" if enough else "1 GB for each run at a time"
    )


def shared_memory() -> Check:
    """A file system in memory for the kernel's memory, which is a file; it must allow programs."""
    place = "/dev/shm"
    if not os.access(place, os.W_OK | os.X_OK):
        return Check(VIRTUAL, place, False, "cannot be written", f"mount -t tmpfs tmpfs {place}")
    free = shutil.disk_usage(place).free
    if os.statvfs(place).f_flag & os.ST_NOEXEC:
        return Check(VIRTUAL, place, False, "mounted noexec", f"mount -o remount,exec {place}")
    enough = free >= RUN_MEMORY
    todo = "" if enough else "runs fall back to slower disk; a container takes --shm-size=4g"
    return Check(VIRTUAL, place, enough, f"{gigabytes(free)} free", todo, needed=False)


def routes() -> Check:
    """The program ``ip``, which users' programs may call."""
    there = shutil.which("ip", path=tools.PATH) is not None
    todo = "" if there else f"{tools.install(['iproute2'])}, for programs that call ip, tc or ss"
    return Check(VIRTUAL, "iproute2", there, "there" if there else "missing", todo, needed=False)


# ---- Hadoop ----


def hdfs() -> Iterator[Check]:
    """Needs of experiments that run Hadoop, besides those of Linux hosts in virtual time."""
    release = hadoop.release()
    for name, tool in (("JDK", "javac"), ("Maven", "mvn")):
        found = hadoop.version_of(tool)
        todo = "" if found else tools.install([hadoop.PACKAGES[tool]])
        yield Check(HDFS, name, bool(found), found or "missing", todo, needed=name == "JDK" or not release)
    yield built_hadoop(release)


def built_hadoop(release: str) -> Check:
    """Whether Hadoop's jars are built, of the right release, and as they were published."""
    if not release:
        return Check(HDFS, "Hadoop", False, "not built", "make hadoop")
    if not release.startswith(f"{hadoop.RELEASE}."):
        return Check(
            HDFS,
            "Hadoop",
            False,
            f"{release}; {hadoop.RELEASE} is needed",
            "git checkout hadoop; make hadoop",
        )
    if bad := hadoop.damaged():
        found = f"{release}; {bad[0]} is not as artifacts.sha256 has it"
        return Check(HDFS, "Hadoop", False, found, "rm -r hadoop/target; make hadoop")
    return Check(HDFS, "Hadoop", True, release)


# ---- The kernel of this machine ----


def struct_ops() -> Iterator[Check]:
    """Conditions of loading our congestion control into the machine's own kernel."""
    btf = Path("/sys/kernel/btf/vmlinux").exists()
    todo = "" if btf else "a kernel with CONFIG_DEBUG_INFO_BTF=y (6.1 or newer)"
    yield Check(STRUCT_OPS, "types of the kernel (BTF)", btf, platform.release(), todo)
    for tool, package in (("clang", "clang"), ("bpftool", "bpftool")):
        place = shutil.which(tool, path=tools.PATH)
        yield Check(
            STRUCT_OPS, tool, place is not None, place or "missing", "" if place else tools.install([package])
        )
    yield root(STRUCT_OPS)


def root(way: str) -> Check:
    """Whether this process runs as root."""
    is_root = os.geteuid() == 0
    return Check(way, "root", is_root, "yes" if is_root else "no", "" if is_root else "run it with sudo")


def gigabytes(count: int) -> str:
    """``1.5 GB``."""
    return f"{count / 1e9:.1f} GB"


def _read(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
