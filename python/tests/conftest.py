"""Fixtures of all tests: a small experiment, and the command as a user types it."""

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import firstlight as fl
import pytest
from etalon import WEEK, fabric
from firstlight.linux import kernels

SMALL = f"""\
name = "small"
seed = 7
duration = "24ms"
warmup = "4800us"
{fabric()}{WEEK}
[tcp]
cc = "cubic"

[[flows]]
from = "rack0"
to = "rack1"
jitter = "100us"

[measure]
pair = [0, 1]
series = "20us"
fold = 3
"""

Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """An experiment of 24 ms: four flows between two racks."""
    file = tmp_path / "small.toml"
    file.write_text(SMALL)
    return file


@pytest.fixture
def command(tmp_path: Path) -> Command:
    """Run ``firstlight`` with the given words in the test's own directory."""

    def run(*words: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            argv(words), cwd=tmp_path, capture_output=True, text=True, check=False, env=environment()
        )

    return run


def argv(words: Sequence[str | Path]) -> list[str]:
    """The command's words; the interpreter is named, so that the tests run from any environment."""
    return [sys.executable, "-m", "firstlight", *map(str, words)]


def environment() -> dict[str, str]:
    """A terminal of fixed width without colours."""
    return {**os.environ, "COLUMNS": "120", "NO_COLOR": "1"}


@pytest.fixture(scope="session")
def kernel() -> kernels.Kernel:
    """The kernel of Linux hosts; without one, tests that need it are skipped with the reason."""
    try:
        return kernels.find(250)
    except fl.KernelError as e:
        pytest.skip(f"no kernel for Linux hosts: {e}")


@pytest.fixture
def any_tick(kernel: kernels.Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    """Takes the kernel that is built for kernels of every tick and version: a plan asks for more of them than
    the tests build."""
    monkeypatch.setattr(kernels, "find", lambda hz, version="", patches=(): kernel)
