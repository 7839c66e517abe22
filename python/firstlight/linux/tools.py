"""Programs of this machine that building a kernel needs, and which Debian package has each."""

import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping

from firstlight.errors import KernelError

BUILD = {
    "make": "make",
    "gcc": "gcc",
    "ld": "binutils",
    "flex": "flex",
    "bison": "bison",
    "bc": "bc",
    "patch": "patch",
    "tar": "tar",
    "xz": "xz-utils",
}
"""Program -> package. (Not needed for this configuration: perl, cpio, libelf, OpenSSL, pahole.)"""
HEADER = "libc6-dev"
PATH = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/sbin"))


def missing(wanted: Mapping[str, str] = BUILD) -> dict[str, str]:
    """The missing programs, each with its package."""
    lacking = {tool: package for tool, package in wanted.items() if not shutil.which(tool, path=PATH)}
    if "gcc" in wanted and "gcc" not in lacking and not _has_headers():
        lacking["the C library's headers"] = HEADER
    return lacking


def require(wanted: Mapping[str, str] = BUILD) -> None:
    """Raise :class:`KernelError` when a program is missing; its message has the command that installs it."""
    if lacking := missing(wanted):
        raise KernelError(
            f"to build a kernel {listed(lacking)} must be installed: {install(lacking.values())}"
        )


def install(packages: Iterable[str]) -> str:
    """``apt install bc flex``."""
    return f"apt install {' '.join(sorted(set(packages)))}"


def listed(names: Iterable[str]) -> str:
    """``bc, flex and bison``."""
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


def _has_headers() -> bool:
    done = subprocess.run(
        ["gcc", "-E", "-"], input="#include <dlfcn.h>\n", text=True, capture_output=True, check=False
    )
    return done.returncode == 0
