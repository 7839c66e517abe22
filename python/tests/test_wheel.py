"""The wheel in ``dist/`` (``make wheel``) in an empty environment, without a checkout and without Rust."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import firstlight as fl
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
    constraints = folder / "constraints.txt"
    constraints.write_text(pinned((ROOT / "requirements.lock").read_text()))
    install(folder, "-c", str(constraints), str(wheel))
    return folder


PAIR = """\
duration = "50ms"

[fabric]
kind = "star"
hosts = 2

[hosts]
kind = "linux"
rate = "10Gbps"
delay = "5us"

[[flows]]
from = "host0"
to = "host1"
size = "100kB"
"""


def pinned(lock: str) -> str:
    """The versions of a lock file, without hashes: the wheel has none."""
    return "".join(f"{line.split()[0]}\n" for line in lock.splitlines() if "==" in line and line[0].isalnum())


def install(environment: Path, *words: str) -> None:
    """Install what ``words`` say by the environment's pip."""
    pip = [
        str(environment / "v/bin/python"),
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
    ]
    subprocess.run([*pip, *words], check=True, cwd=environment)


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
        "pages/assets/uPlot.iife.min.js",
        "live/assets/live.js",
        "live/scenes/incast.toml",
    ):
        assert f"firstlight/{name}" in names
    assert modes["firstlight/firstlight-guest"] & 0o111
    assert not [name for name in names if name.endswith((".part", ".pyc"))]
    rust = {name for name in names if name.endswith(".rs")}
    interface = ("firstlight/share/crates/cc/", "firstlight/share/crates/units/")
    assert f"{interface[0]}src/lib.rs" in rust and all(name.startswith(interface) for name in rust)


def test_it_reproduces_figures_in_an_empty_environment(environment: Path) -> None:
    done = run(environment, "reproduce", "hotspot", "timers", "--quick", "--jobs", "2")
    assert done.returncode == 0, done.stderr
    assert (environment / "results" / "report.html").is_file()
    assert len(run(environment, "list").stdout.splitlines()) > 20
    assert run(environment, "doctor").returncode == 0


@pytest.mark.skipif(not shutil.which("cargo"), reason="a controller in Rust is built with cargo")
def test_a_congestion_control_is_built_against_the_wheel(environment: Path) -> None:
    assert run(environment, "cc", "new", "mine").returncode == 0
    subprocess.run(["cargo", "build", "--quiet", "--release"], cwd=environment / "mine", check=True)
    done = run(environment, "cc", "check", "mine/target/release/libmine.so", "--cases", "20")
    assert "no property is broken" in done.stdout, done.stderr


def test_linux_hosts_run_from_two_wheels(environment: Path) -> None:
    """In a cache without a kernel, that of the second wheel is found."""
    wheels = sorted(DIST.glob("firstlight_kernel-*.whl"), key=os.path.getmtime)
    if not wheels:
        pytest.skip("no kernel's wheel: run `make kernel-wheel`")
    (environment / "pair.toml").write_text(PAIR)
    before = run(environment, "run", "pair.toml")
    assert before.returncode == 1 and "no kernel" in before.stderr
    install(environment, "--no-index", str(wheels[-1]))
    assert "firstlight_kernel" in run(environment, "kernel", "list", "--json").stdout
    done = run(environment, "run", "pair.toml", "--out", "results/pair")
    assert done.returncode == 0, done.stderr
    result = fl.load(environment / "results" / "pair")
    assert result.manifest["hosts"]["linux"] == 1
    assert result.flows["bytes_received"].tolist() == [100_000]


def test_the_kernel_s_wheel_has_its_license_and_source() -> None:
    wheels = sorted(DIST.glob("firstlight_kernel-*.whl"), key=os.path.getmtime)
    if not wheels:
        pytest.skip("no kernel's wheel: run `make kernel-wheel`")
    assert "-py3-none-manylinux_2_" in wheels[-1].name
    with zipfile.ZipFile(wheels[-1]) as archive:
        names = archive.namelist()
        texts = {
            name.rpartition("/")[2]: archive.read(name).decode() for name in names if "dist-info" in name
        }
        modes = {e.filename.rpartition("/")[2]: e.external_attr >> 16 for e in archive.infolist()}
    assert "License-Expression: GPL-2.0-only" in texts["METADATA"]
    assert "GNU GENERAL PUBLIC LICENSE" in texts["COPYING"]
    assert "for at least three years" in texts["SOURCE.txt"] and "{" not in texts["SOURCE.txt"]
    assert {"firstlight.patch", "firstlight_kern.c", "kernel.config"} <= {n.rpartition("/")[2] for n in names}
    assert modes["linux"] & 0o111


def test_the_source_archive_has_what_a_build_needs(tmp_path: Path) -> None:
    archives = sorted(DIST.glob("firstlight-*.tar.gz"), key=os.path.getmtime)
    if not archives:
        pytest.skip("no source archive: run `make wheel`")
    with tarfile.open(archives[-1]) as archive:
        archive.extractall(tmp_path, filter="data")
    (root,) = tmp_path.iterdir()
    for name in ("pyproject.toml", "README.md", "crates/version/build.rs", "python/firstlight/__init__.py"):
        assert (root / name).is_file(), name
    share = root / "python/firstlight/share"
    assert len(list(share.glob("experiments/*/*/experiment.toml"))) > 40
    assert (share / "linux/kernel/firstlight.patch").is_file()
    words = ["cargo", "metadata", "--offline", "--format-version", "1"]  # names every crate, or fails
    known = subprocess.run(words, cwd=root / "crates/py", capture_output=True, text=True, check=False)
    assert known.returncode == 0, known.stderr
    for file in (file for crate in (root / "crates").iterdir() for file in crate.glob("src/**/*.rs")):
        for name in re.findall(r'include_(?:str|bytes)!\("([^"]+)"\)', file.read_text()):
            assert (file.parent / name).is_file(), f"{file} includes {name}"
