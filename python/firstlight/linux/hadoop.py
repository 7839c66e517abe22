"""The state of ``hadoop/`` of the checkout: its tools and its build of Hadoop."""

import hashlib
import re
import shutil
import subprocess
from pathlib import Path

from firstlight.linux import tools

FOLDER = Path(__file__).resolve().parents[3] / "hadoop"
PACKAGES = {"javac": "default-jdk-headless", "mvn": "maven"}
RELEASE = "3.4"
"""The releases of Hadoop that the placement policy and the writer were tried with."""


def version_of(tool: str) -> str:
    """The version that ``javac`` or ``mvn`` prints; empty if the tool is not installed."""
    place = shutil.which(tool, path=tools.PATH)
    if place is None:
        return ""
    said = subprocess.run([place, "-version"], capture_output=True, text=True, check=False)
    found = re.search(r"\d+(\.\d+)+", said.stdout + said.stderr)
    return found[0] if found else "of an unknown version"


def release() -> str:
    """The release of Hadoop that was built; empty if none was."""
    try:
        jars = (FOLDER / "target/class-path").read_text(encoding="utf-8")
    except OSError:
        return ""
    found = re.search(r"hadoop-hdfs-(\d+\.\d+\.\d+)\.jar", jars)
    return found[1] if found else ""


def damaged() -> list[str]:
    """The jars of the build whose SHA-256 is not in ``artifacts.sha256``."""
    listed = (FOLDER / "artifacts.sha256").read_text(encoding="utf-8").split()[::2]
    jars = sorted((FOLDER / "target/lib").glob("*.jar"))
    return [jar.name for jar in jars if hashlib.sha256(jar.read_bytes()).hexdigest() not in listed]
