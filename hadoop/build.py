"""Builds the programs of HDFS on Linux hosts into ``target/``: ``make hadoop``.

Maven fetches Hadoop's released artifacts, its own plugins and their dependencies into a repository in this
folder. ``artifacts.sha256`` has the SHA-256 of each file, because Maven 3.8 pins none. The files are compared
before Maven runs and after it. ``target/class-path``, without which no experiment runs, is written last.

    build.py            build
    build.py --test     build and run the unit tests
    build.py --lock     write artifacts.sha256 anew, after a version in pom.xml has changed
"""

import argparse
import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
LIST = HERE / "artifacts.sha256"
TARGET = HERE / "target"
REPOSITORY = TARGET / "repository"
JAR = "firstlight-hdfs-0.1.0.jar"
MAVEN = (3, 6, 3)
JDK = 11
AFTER_A_CHANGE = "after a change of pom.xml: python3 hadoop/build.py --lock"


class BuildError(Exception):
    """The build failed: what is wrong, where, and what to do."""


# ---- Tools ----


def require_tools() -> None:
    """Raise :class:`BuildError` if the JDK or Maven is missing or too old."""
    for tool in ("javac", "mvn"):
        if not shutil.which(tool):
            raise BuildError(f"there is no {tool}: make packages (apt install default-jdk-headless maven)")
    found = re.search(r"javac (\d+)", said("javac", "-version"))
    if not found or int(found[1]) < JDK:
        which = found[1] if found else "of an unknown version"
        raise BuildError(f"javac is {which}; {JDK} or newer is needed: make packages")
    found = re.search(r"Apache Maven (\d+)\.(\d+)\.(\d+)", said("mvn", "-B", "-version"))
    version = tuple(map(int, found.groups())) if found else (0,)
    if version < MAVEN:
        raise BuildError(f"Maven is {dotted(version)}; {dotted(MAVEN)} or newer is needed")


def said(*command: str) -> str:
    """What a command prints."""
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def dotted(version: Sequence[int]) -> str:
    """``3.8.7``."""
    return ".".join(map(str, version))


# ---- Artifacts ----


def read_list(file: Path) -> dict[str, str]:
    """The hash of each artifact, by its path in the repository; lines as ``sha256sum`` writes them."""
    rows = (line.split("  ", 1) for line in file.read_text(encoding="utf-8").splitlines())
    return {path: digest for digest, path in rows}


def artifacts(repository: Path) -> dict[str, str]:
    """The hash of each artifact in a repository of Maven's, in the order of their paths."""
    files = (f for kind in ("jar", "pom") for f in repository.rglob(f"*.{kind}"))
    return {str(f.relative_to(repository)): sha256(f) for f in sorted(files)}


def sha256(file: Path) -> str:
    """A file's hash."""
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def compare(found: Mapping[str, str], listed: Mapping[str, str], *, whole: bool) -> None:
    """Raise :class:`BuildError` if an artifact is not listed or differs from the list. With ``whole``, each
    listed artifact must also be there."""
    for path, digest in found.items():
        if path not in listed:
            raise BuildError(f"{path}: not in {LIST.name}; {AFTER_A_CHANGE}")
        if digest != listed[path]:
            raise BuildError(
                f"{REPOSITORY / path}: its SHA-256 is {digest}, but {LIST.name} has {listed[path]}; "
                "remove the file, and do not use it if it comes so again"
            )
    if whole and (missing := sorted(set(listed) - set(found))):
        raise BuildError(f"{missing[0]}: in {LIST.name}, but Maven has not fetched it; {AFTER_A_CHANGE}")


# ---- Building ----


def maven(repository: Path, *goals: str, offline: bool = False) -> None:
    """Run Maven on the project of this folder."""
    options = ["-B", "-q", "--strict-checksums", f"-Dmaven.repo.local={repository}"]
    command = ["mvn", *options, *(["-o"] if offline else []), *goals]
    done = subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BuildError(f"Maven failed:\n{done.stdout.strip()}")


def build(*, test: bool) -> None:
    """Fetch the artifacts, compare them, compile, and prepare the jars that experiments run."""
    class_path = TARGET / "class-path"
    class_path.unlink(missing_ok=True)
    listed = read_list(LIST)
    present = artifacts(REPOSITORY)
    compare(present, listed, whole=False)
    for old in (TARGET / "lib", TARGET / "classes", TARGET / "test-classes"):
        shutil.rmtree(old, ignore_errors=True)
    maven(REPOSITORY, "package", *([] if test else ["-DskipTests"]), offline=len(present) == len(listed))
    compare(artifacts(REPOSITORY), listed, whole=True)
    jars = [JAR, *(f"lib/{f.name}" for f in sorted((TARGET / "lib").iterdir()))]
    rehearse(jars)
    class_path.write_text("".join(f"{jar}\n" for jar in jars), encoding="utf-8")


def rehearse(jars: Sequence[str]) -> None:
    """Run an HDFS in one process. This shows that the jars work. It also writes an archive of classes, from
    which the Java virtual machines of an experiment start faster."""
    archive = TARGET / "classes.jsa"
    archive.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(prefix="firstlight-hdfs-") as place:
        command = [
            "java",
            f"-XX:ArchiveClassesAtExit={archive}",
            "-Xlog:cds=off,cds+dynamic=off",
            "-XX:+UseSerialGC",
            f"-Dlog4j.configuration=file:{HERE / 'conf/log4j.properties'}",
            "-Dhosts.blocks=none",
            "-cp",
            ":".join(str(TARGET / jar) for jar in jars),
            "firstlight.hdfs.Rehearsal",
            f"{place}/data",
        ]
        done = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BuildError(f"an HDFS in one process does not work with these jars:\n{done.stderr.strip()}")


def lock() -> None:
    """Fetch all artifacts anew and write their hashes to the list."""
    with tempfile.TemporaryDirectory(prefix="firstlight-hdfs-") as fresh:
        maven(Path(fresh), "package")
        found = artifacts(Path(fresh))
    LIST.write_text("".join(f"{digest}  {path}\n" for path, digest in found.items()), encoding="utf-8")
    print(f"{LIST}: {len(found)} artifacts")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="Build what experiments need of Hadoop.")
    parser.add_argument("--test", action="store_true", help="run the unit tests too")
    parser.add_argument("--lock", action="store_true", help=f"write {LIST.name} anew")
    given = parser.parse_args()
    try:
        require_tools()
        if given.lock:
            lock()
        else:
            build(test=given.test)
    except BuildError as e:
        sys.exit(f"error: {e}")


if __name__ == "__main__":
    main()
