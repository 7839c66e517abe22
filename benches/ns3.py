"""The peer: ns-3 from Debian's packages, with the programs under `peers/ns3/`."""

import shutil
import subprocess
from pathlib import Path

SOURCE = Path(__file__).resolve().parent / "peers" / "ns3"
INSTALL = "sudo apt install libns3-dev g++ make pkg-config"


class Missing(Exception):
    """ns-3 or what builds against it is not installed; the message says what to do."""


def build(folder: Path) -> None:
    """Builds the programs into `folder`; does nothing when they are up to date."""
    absent = [tool for tool in ("make", "g++", "pkg-config") if shutil.which(tool) is None]
    if absent:
        raise Missing(f"no {', '.join(absent)}: {INSTALL}")
    if subprocess.run(["pkg-config", "--exists", "ns3-core"], check=False).returncode != 0:
        raise Missing(f"ns-3 is not installed: {INSTALL}")
    make = ["make", "-C", str(SOURCE), f"BUILD={folder}"]
    made = subprocess.run(make, capture_output=True, text=True, check=False)
    if made.returncode != 0:
        raise Missing(f"building against ns-3 failed (tested with Debian's 3.37):\n{made.stderr.strip()}")


def version() -> str:
    """As pkg-config has it."""
    ask = ["pkg-config", "--modversion", "ns3-core"]
    asked = subprocess.run(ask, capture_output=True, text=True, check=True)
    return f"{asked.stdout.strip()} (release build of the distribution, logging compiled in)"


def command(folder: Path, program: list[str | Path], *, count: bool = False) -> list[str | Path]:
    """One run, which prints JSON. Hops are counted in a run of their own, since the counting slows it."""
    name, *options = program
    return [folder / name, *options, f"--count={int(count)}"]
