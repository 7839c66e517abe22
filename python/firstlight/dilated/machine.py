"""Checks what hosts in dilated time need of a machine. Each check runs in a process that ends after it."""

import contextlib
import ctypes
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

from firstlight.linux import installed, tools
from firstlight.linux.directory import RunDirectory
from firstlight.linux.doctor import Check

DILATED = "Linux hosts, dilated time"
NEW_USER, NEW_NETWORK = 0x10000000, 0x40000000
TUN = Path("/dev/net/tun")
MOUNTS = Path("/proc/self/mounts")
TRIED = "firstlight-"
"""The name of the group in which limits are tried, before this process's number. The next run removes one
that was left by a process that was killed, as it removes those of runs."""
NO_LIMITS = "leave hosts.cores out, or use a kernel with CONFIG_CFS_BANDWIDTH"


def examine() -> Iterator[Check]:
    """All checks of hosts in dilated time."""
    yield processors()
    for name, file in (
        ("engine", installed.DILATED_ENGINE),
        ("LibVT", installed.LIBVT),
        ("LibADU", installed.LIBADU),
    ):
        there = file.is_file()
        yield _check(
            name, there, file.name if there else "missing", "" if there else "make setup in a checkout"
        )
    yield namespaces()
    yield devices()
    yield queues()
    yield shell()
    yield groups()
    yield limits()


def processors() -> Check:
    """One for the engine, the others for the hosts."""
    count = len(os.sched_getaffinity(0))
    return _check("processors", count > 1, f"{count}", "" if count > 1 else "2 or more are needed")


def namespaces() -> Check:
    """Network namespaces, of root's or of an own user namespace."""
    ok = in_child(lambda: None)
    who = "as root" if os.geteuid() == 0 else "in a user namespace"
    return _check("network namespaces", ok, who if ok else "cannot be made", "" if ok else "run it with sudo")


def devices() -> Check:
    """TUN devices."""
    ok = in_child(lambda: os.close(os.open(TUN, os.O_RDWR)))
    todo = f"run it with sudo, or let this user open {TUN} (CONFIG_TUN)"
    return _check("TUN devices", ok, str(TUN) if ok else f"{TUN} cannot be opened", "" if ok else todo)


def queues() -> Check:
    """The kernel's token bucket filter, tried on a loopback device."""
    tool = shutil.which("tc", path=tools.PATH)
    if not tool:
        return _check("token bucket filter", True, "not tried: tc is missing", tools.install(["iproute2"]))
    words = [tool, "qdisc", "add", "dev", "lo", "root", "tbf", "rate", "1mbit", "burst", "9k", "limit", "90k"]
    ok = in_child(lambda: os.execv(tool, words))
    return _check("token bucket filter", ok, "there" if ok else "missing", "" if ok else "CONFIG_NET_SCH_TBF")


def shell() -> Check:
    """Programs are started by a shell that LibVT can stand before."""
    if not installed.LIBVT.is_file():
        return _check("shell", True, "not tried: LibVT is missing", "")
    command = ["/bin/sh", "-c", "exec date +%s"]
    with RunDirectory(0) as run:
        given = {**os.environ, "LD_PRELOAD": str(run.link("libvt.so", installed.LIBVT)), "LIBVT_TDF": "2"}
        done = subprocess.run(command, env=given, capture_output=True, text=True, check=False)
    ok = done.returncode == 0 and not done.stderr  # the loader only warns of a library that is missing
    said = done.stderr.strip().splitlines()[-1:] or ["it does not run programs"]
    return Check(
        DILATED,
        "shell",
        ok,
        "dilated" if ok else said[0],
        "" if ok else "use a shell that is linked with glibc",
    )


def groups() -> Check:
    """Control groups for processors."""
    place, version = hierarchy()
    if place is None:
        return _check("control groups", False, "not mounted", "mount -t cgroup2 none /sys/fs/cgroup")
    if version == 2 and "cpu" not in _read(place / "cgroup.controllers").split():
        todo = "let version 2 have the cpu controller (CONFIG_CGROUP_SCHED, no mount of version 1 with it)"
        return _check("control groups", False, f"{place} has no controller 'cpu'", todo)
    ok = os.access(place, os.W_OK)
    return _check("control groups", ok, f"version {version}, {place}", "" if ok else "run it with sudo")


def limits() -> Check:
    """Limits of processor time (``hosts.cores``), tried in a group that is removed again."""
    place, version = hierarchy()
    if place is None:
        return _optional("processor limits", False, "no control groups", "")
    if version == 2 and "cpu" not in _read(place / "cgroup.subtree_control").split():
        there = "cpu" in _read(place / "cgroup.controllers").split()
        found = "not tried: no group has them yet" if there else f"{place} has no controller 'cpu'"
        return _optional("processor limits", there, found, "" if there else NO_LIMITS)
    group = place / f"{TRIED}{os.getpid()}"
    file, text = ("cpu.max", "1000 10000") if version == 2 else ("cpu.cfs_quota_us", "1000")
    try:
        group.mkdir()
    except OSError as e:
        return _optional("processor limits", False, f"{place}: {e.strerror}", "run it with sudo")
    try:
        (group / file).write_text(text)
    except OSError as e:
        return _optional("processor limits", False, f"{file}: {e.strerror}", NO_LIMITS)
    finally:
        with contextlib.suppress(OSError):
            group.rmdir()
    return _optional("processor limits", True, f"by {file}", "")


def hierarchy() -> tuple[Path | None, int]:
    """Where control groups for processors are made, and their version."""
    rows = [line.split() for line in MOUNTS.read_text().splitlines()]
    one = [row[1] for row in rows if row[2] == "cgroup" and "cpu" in row[3].split(",")]
    two = [row[1] for row in rows if row[2] == "cgroup2"]
    place = next(iter(one + two), None)
    return (None if place is None else Path(place)), (1 if one else 2)


def _read(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:
        return ""


def _optional(name: str, ok: bool, found: str, todo: str) -> Check:
    return Check(DILATED, name, ok, found, todo, needed=False)


def _check(name: str, ok: bool, found: str, todo: str) -> Check:
    return Check(DILATED, name, ok, found, todo)


def in_child(work: Callable[[], object]) -> bool:
    """Whether ``work`` succeeds in a network namespace of its own."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            flags = NEW_NETWORK | (0 if os.geteuid() == 0 else NEW_USER)
            if ctypes.CDLL(None).unshare(flags) == 0:
                work()
                code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
