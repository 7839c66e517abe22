"""Congestion controls of this machine's kernel: those that it has, those that it can load, and reTCP as BPF.

Nothing is changed that stays: reTCP is there as long as a run, held by a process that ends with it.
"""

import contextlib
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from firstlight.errors import RunError
from firstlight.linux import kernels, tools

AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
TYPES = Path("/sys/kernel/btf/vmlinux")
RETCP = "retcp"
MODULE = "retcp.ko"
BUILD = {"cc": "build-essential", "clang": "clang", "bpftool": "bpftool"}
HEADER = Path("/usr/include/bpf/bpf_helpers.h")
READY = "ready\n"


@contextlib.contextmanager
def ready(plan: dict[str, Any]) -> Iterator[None]:
    """The congestion controls that the hosts of ``plan`` use are there, with the parameters that it gives."""
    with contextlib.ExitStack() as stack:
        if MODULE in plan["modules"]:
            stack.enter_context(retcp(plan))
        check_parameters(plan)
        lacking = wanted(plan) - available()
        for name in sorted(lacking):
            load(name)
        yield


def wanted(plan: dict[str, Any]) -> set[str]:
    """The names of all that flows and hosts use."""
    setting = "net.ipv4.tcp_congestion_control"
    own = {s["value"] for host in plan["hosts"] for s in host["sysctls"] if s["name"] == setting}
    return own | {flow["cc"] for flow in plan["flows"]}


def available() -> set[str]:
    """The controls that the kernel has now."""
    return set(AVAILABLE.read_text().split())


def load(name: str) -> None:
    """Load the kernel's own module of a congestion control."""
    tool = shutil.which("modprobe", path=tools.PATH)
    if tool:
        subprocess.run([tool, f"tcp_{name}"], capture_output=True, check=False)
    if name not in available():
        known = ", ".join(sorted(available()))
        raise RunError(
            f"this machine's kernel has no congestion control '{name}', but {known}: use one of them, or "
            'Linux hosts in virtual time (hosts.kind = "linux")'
        )


def check_parameters(plan: dict[str, Any]) -> None:
    """The machine's kernel is shared: what it is set to cannot be changed for a run."""
    for parameter in plan["parameters"]:
        module, name, value = parameter["module"], parameter["name"], parameter["value"]
        file = Path("/sys/module") / module / "parameters" / name
        if module == RETCP:
            continue
        if not file.exists() or file.read_text().strip() != value:
            raise RunError(
                f"{module}.{name} = {value}: this machine's kernel is shared and cannot be set to it; "
                'leave the key out, or use Linux hosts in virtual time (hosts.kind = "linux")'
            )


# ---- reTCP ----


@contextlib.contextmanager
def retcp(plan: dict[str, Any]) -> Iterator[None]:
    """The kernel has reTCP, with the plan's factors."""
    factors = {p["name"]: int(p["value"]) for p in plan["parameters"] if p["module"] == RETCP}
    if RETCP in available():
        raise RunError(
            "this machine's kernel has a congestion control 'retcp' already, which is not this run's"
        )
    holder, program = build(factors)
    process = subprocess.Popen(
        [holder, program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdin and process.stdout and process.stderr
    try:
        if process.stdout.readline() != READY:
            raise RunError(f"this machine's kernel does not take reTCP: {process.stderr.read().strip()}")
        yield
    finally:
        process.stdin.close()
        process.wait()
        process.stdout.close()
        process.stderr.close()


def build(factors: dict[str, int]) -> tuple[Path, Path]:
    """The program that holds reTCP, and reTCP itself for this kernel; built once for each pair of factors."""
    check_tools()
    holder, source = kernels.folder_of_linux() / "bpf" / "hold.c", kernels.folder_of_linux() / RETCP
    options = [f"-DRETCP_{name.upper()}={value}" for name, value in sorted(factors.items())]
    content = [holder, *(source / name for name in ("retcp_bpf.c", "retcp.h", "retcp_sock.h"))]
    identity = [os.uname().release, *options, *(file.read_text() for file in content)]
    place = kernels.cache() / "bpf" / hashlib.sha256("\0".join(identity).encode()).hexdigest()[:16]
    if not (place / "retcp.o").exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=place.parent) as made:
            compile_into(Path(made), holder, source, options)
            shutil.rmtree(place, ignore_errors=True)
            shutil.copytree(made, place)
    return place / "hold", place / "retcp.o"


def compile_into(place: Path, holder: Path, source: Path, options: list[str]) -> None:
    """Build both in a new directory."""
    types = call("bpftool", "btf", "dump", "file", TYPES, "format", "c")
    (place / "vmlinux.h").write_text(types)
    call("cc", "-O2", "-o", place / "hold", holder, "-lbpf")
    call(
        *("clang", "-O2", "-g", "-target", "bpf", f"-I{place}", f"-I{source}", *options),
        *("-c", source / "retcp_bpf.c", "-o", place / "retcp.o"),
    )
    (place / "vmlinux.h").unlink()


def call(tool: str, *words: str | Path) -> str:
    """Run a tool; its errors become ours."""
    command = [shutil.which(tool, path=tools.PATH) or tool, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RunError(f"reTCP cannot be built for this kernel: {' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


def check_tools() -> None:
    """The packages that the build needs."""
    lacking = tools.missing(BUILD)
    if not HEADER.exists():
        lacking["libbpf"] = "libbpf-dev"
    if lacking:
        raise RunError(f"reTCP on this machine's kernel needs: {tools.install(lacking.values())}")
    if not TYPES.exists():
        raise RunError(f"reTCP on this machine's kernel needs {TYPES} (CONFIG_DEBUG_INFO_BTF)")
