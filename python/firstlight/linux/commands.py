"""Commands of a build: their output, their end, and an environment in which builds repeat."""

import os
import re
import signal
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from firstlight.linux import tools

TROUBLE = re.compile(r"\berror:|^make.*\*\*\*|: not found|No space left")
"""Lines of a build that say why it failed."""
REPEATABLE = {
    "KBUILD_BUILD_TIMESTAMP": "@0",
    "KBUILD_BUILD_USER": "firstlight",
    "KBUILD_BUILD_HOST": "firstlight",
    "KBUILD_BUILD_VERSION": "1",
    "LC_ALL": "C",
}
"""Settings that make builds repeat; the kernel's version string is one of its sources of randomness."""


def follow(
    command: Sequence[str], folder: Path, write: Callable[[str], object], on_line: Callable[[str], None]
) -> tuple[int, str]:
    """Run ``command`` in a process group of its own, which is killed if this process is interrupted. Returns
    its exit code and its first error line."""
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
    """The environment without variables that would change the build: of a make that runs us, of cross
    compilers, flags."""
    turning = re.compile(
        r"MAKE|MFLAGS|KBUILD|KCONFIG|KCFLAGS|ARCH$|CROSS_COMPILE|[A-Z]*FLAGS$|[OVCM]$|INSTALL_|LD_PRELOAD"
    )
    kept = {k: v for k, v in os.environ.items() if not turning.match(k)}
    return {**kept, **REPEATABLE, "PATH": tools.PATH}
