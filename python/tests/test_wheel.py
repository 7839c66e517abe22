"""The wheel in ``dist/`` (``make wheel``) in an empty environment, without a checkout and without Rust."""

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DIST = ROOT / "dist"


@pytest.fixture(scope="module")
def wheel() -> Path:
    found = sorted(DIST.glob("firstlight-*.whl"), key=lambda file: file.stat().st_mtime)
    if not found:
        pytest.skip("no wheel: run `make wheel`")
    return found[-1]


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment that has the wheel and what it depends on, and nothing else."""
    folder = tmp_path_factory.mktemp("empty environment")
    subprocess.run([sys.executable, "-m", "venv", folder / "v"], check=True)
    pip = [str(folder / "v/bin/python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    constraints = folder / "constraints.txt"
    constraints.write_text(pinned((ROOT / "requirements.lock").read_text()))
    subprocess.run([*pip, "-c", constraints, wheel], check=True, cwd=folder)
    return folder


def pinned(lock: str) -> str:
    """The versions of a lock file, without hashes: the wheel has none."""
    return "".join(f"{line.split()[0]}\n" for line in lock.splitlines() if "==" in line and line[0].isalnum())


def run(environment: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """The installed command, with no programs in its path but the system's."""
    return subprocess.run(
        [environment / "v/bin/firstlight", *words],
        cwd=environment,
        env={"PATH": "/usr/bin:/bin", "HOME": str(environment), "LC_ALL": "C.UTF-8"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_wheel_is_for_any_python_and_many_linuxes(wheel: Path) -> None:
    assert "-cp311-abi3-manylinux" in wheel.name
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        modes = {entry.filename: entry.external_attr >> 16 for entry in archive.infolist()}
    for name in (
        "_core.abi3.so",
        "libfirstlight_uml.so",
        "firstlight-guest",
        "share/linux/kernel/firstlight.patch",
    ):
        assert f"firstlight/{name}" in names
    assert modes["firstlight/firstlight-guest"] & 0o111
    assert not [name for name in names if name.endswith((".rs", ".part", ".pyc"))]


def test_it_reproduces_figures_in_an_empty_environment(environment: Path) -> None:
    done = run(environment, "reproduce", "hotspot", "timers", "--quick", "--jobs", "2")
    assert done.returncode == 0, done.stderr
    assert (environment / "results" / "report.html").is_file()
    assert len(run(environment, "list").stdout.splitlines()) > 20
    assert run(environment, "doctor").returncode == 0


def test_the_source_archive_has_what_a_build_needs() -> None:
    archives = sorted(DIST.glob("firstlight-*.tar.gz"), key=os.path.getmtime)
    if not archives:
        pytest.skip("no source archive: run `make wheel`")
    with tarfile.open(archives[-1]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"pyproject.toml", "Cargo.lock", "Cargo.toml", "python/firstlight/__init__.py"} <= names
    assert {"crates/py/src/lib.rs", "crates/sim/src/lib.rs", "crates/version/build.rs"} <= names
