"""Boots a kernel briefly, to check that it runs here."""

import os
import re
import subprocess
import tempfile
from pathlib import Path

FIRST_SECCOMP = (6, 16)
"""The first version that can run its processes by seccomp."""
PATIENCE = 60.0


def boot(binary: Path, seccomp: bool) -> str:
    """Let the kernel run ``/bin/true`` as its only program. Returns an empty text if it did, else the
    reason."""
    words = ["mem=64M", "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro", "init=/bin/true"]
    words += [
        "con=null",
        "console=stderr0",
        "time-travel=inf-cpu",
        "panic=-1",
        *(["seccomp=on"] if seccomp else []),
    ]
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK | os.X_OK) else tempfile.gettempdir()
    with tempfile.TemporaryDirectory(prefix="firstlight-boot-", dir=memory) as home:
        try:
            done = subprocess.run(
                [str(binary), *words, f"uml_dir={home}/"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                timeout=PATIENCE,
                env={**os.environ, "TMPDIR": home},
                cwd=home,
                start_new_session=True,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"it did not come to its first program within {PATIENCE:.0f} s"
        except OSError as e:
            return f"it cannot be executed: {e.strerror}"
    return verdict(done.stdout, done.returncode)


def verdict(console: str, code: int) -> str:
    """Read the console of the boot: the kernel got to its only program if it reports that program's end."""
    ended = re.search(r"Attempted to kill init! exitcode=0x([0-9a-f]+)", console)
    if ended and int(ended[1], 16) == 0:
        return ""
    lines = [line for line in console.splitlines() if line.strip()]
    panics = [line for line in lines if "Kernel panic - not syncing" in line]
    problems = [line for line in lines if re.search(r"panic|failed|error|not permitted", line, re.IGNORECASE)]
    last = (panics or problems or lines or [""])[-1].strip()
    return f"it ended with code {code}" + (f" ({last})" if last else "")
