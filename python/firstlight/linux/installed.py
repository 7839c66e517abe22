"""Finds the files that a run on Linux hosts needs: the engine as a shared object, the guest program, a
kernel."""

import functools
import hashlib
import platform
from pathlib import Path
from typing import Any

from firstlight import _core
from firstlight.core import Experiment
from firstlight.errors import RunError
from firstlight.linux import kernels, own_code
from firstlight.linux.kernels import Kernel

HERE = Path(__file__).resolve().parents[1]
ENGINE = HERE / "libfirstlight_uml.so"
GUEST = HERE / "firstlight-guest"
DILATED_ENGINE = HERE / "firstlight-dilated"
LIBVT = HERE / "libvt.so"
LIBADU = HERE / "libadu.so"


def engine() -> Path:
    """The engine, as a kernel loads it."""
    return _present(ENGINE, "the engine that a kernel loads")


def guest() -> Path:
    """The program that sets up a kernel's hosts."""
    return _present(GUEST, "the program that sets up a kernel's hosts")


def dilated_engine() -> Path:
    """The engine of hosts in dilated time."""
    return _present(DILATED_ENGINE, "the engine of hosts in dilated time")


def libvt() -> Path:
    """The library that gives programs dilated time."""
    return _present(LIBVT, "the library that gives programs dilated time")


def libadu() -> Path:
    """The library that counts programs' writes."""
    return _present(LIBADU, "the library that counts what programs write")


def _present(file: Path, what: str) -> Path:
    if not file.is_file():
        raise RunError(f"{file}: {what} is missing; `make setup` in the checkout builds it")
    return file


def has_linux_hosts(resolved: dict[str, Any]) -> bool:
    """Whether the experiment, with all its defaults, has hosts with a kernel's stack."""
    traffic = [*resolved.get("flows", []), *resolved.get("workload", [])]
    return bool(
        resolved.get("hosts", {}).get("kind") in ("linux", "dilated")
        or any(entry.get("hosts") == "linux" for entry in traffic)
        or resolved.get("program")
    )


def is_dilated(resolved: dict[str, Any]) -> bool:
    """Whether the experiment's Linux hosts have this machine's kernel, in dilated time."""
    return bool(resolved.get("hosts", {}).get("kind") == "dilated")


def hz_of(resolved: dict[str, Any]) -> int:
    """Ticks per second of an experiment's kernel, one per ``tcp.tick``."""
    return round(10**12 / _core.ps_of(resolved.get("tcp", {}).get("tick", "4ms")))


def kernel_of(experiment: Experiment) -> Kernel:
    """The kernel for an experiment's ``tcp.tick``, ``linux.version`` and ``linux.patches``."""
    resolved = experiment.resolved
    version = resolved.get("linux", {}).get("version", "")
    return kernels.find(hz_of(resolved), version, own_code.patches(experiment))


def identity(experiment: Experiment) -> list[str]:
    """Hashes of the files that decide a result besides the experiment: the kernel, the engine and the guest
    program."""
    if is_dilated(experiment.resolved):
        files = (guest(), dilated_engine(), libvt(), libadu())
        return [platform.release(), *(file_hash(file) for file in files)]
    kernel = kernel_of(experiment)
    return [str(kernel.manifest.get("hash")), str(kernel.version), str(kernel.seccomp), *builds()]


@functools.cache
def builds() -> tuple[str, str]:
    """Hashes of the engine and of the guest program."""
    return file_hash(engine()), file_hash(guest())


def file_hash(file: Path) -> str:
    """The first 12 hex digits of a file's SHA-256."""
    return hashlib.sha256(file.read_bytes()).hexdigest()[:12]
