"""The command line as a user types it."""

import json
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import firstlight as fl
import pytest
from conftest import Command, argv, environment


def test_run_prints_a_summary_and_stores_the_result(small: Path, command: Command, tmp_path: Path) -> None:
    done = command(
        "run", small, "--set", "voq.large=50", "--set", "voq.advance=600us", "--out", "kept", "--capture"
    )
    assert done.returncode == 0, done.stderr
    assert "circuit_utilization_pct" in done.stdout
    result = fl.load(tmp_path / "kept")
    assert f"digest {result.digest}" in done.stdout
    assert result.capture is not None
    assert result.manifest["overrides"] == {"voq.large": "50", "voq.advance": "600us"}


def test_run_without_out_says_where_it_stored(small: Path, command: Command, tmp_path: Path) -> None:
    done = command("run", small)
    place = re.search(r"stored in (\S+)", done.stdout)
    assert place is not None
    assert fl.load(tmp_path / place[1]).name == "small"


def test_the_command_and_the_api_give_one_digest(small: Path, command: Command, tmp_path: Path) -> None:
    command("run", small, "--set", "voq.small=8", "--out", "kept")
    assert fl.load(tmp_path / "kept").digest == fl.run(small, {"voq.small": 8}).digest


def test_inspect_shows_what_would_be_built(small: Path, command: Command) -> None:
    done = command("inspect", small)
    assert done.returncode == 0
    assert "week (8)" in done.stdout
    assert json.loads(command("inspect", small, "--json").stdout)["name"] == "small"


def test_version_and_help(command: Command) -> None:
    assert fl.__version__ in command("--version").stdout
    shown = command("--help").stdout
    for name in (
        "run",
        "sweep",
        "compare",
        "schedule",
        "reproduce",
        "list",
        "report",
        "live",
        "inspect",
        "kernel",
        "doctor",
    ):
        assert name in shown
        assert command(name, "--help").returncode == 0


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_commands_and_options(
    command: Command, shell: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = command("completion", shell).stdout
    assert "_FIRSTLIGHT_COMPLETE" in script
    monkeypatch.setenv("_FIRSTLIGHT_COMPLETE", f"{shell}_complete")
    monkeypatch.setenv("COMP_WORDS", "firstlight sweep --sh")
    monkeypatch.setenv("COMP_CWORD", "2" if shell != "fish" else "--sh")
    assert "--shard" in command().stdout


WORDS = {
    "bash": "complete -p firstlight; COMP_WORDS=(firstlight sweep --sh); COMP_CWORD=2; "
    '_firstlight_completion firstlight; echo "${COMPREPLY[@]}"',
    "fish": "complete -C 'firstlight sweep --sh'",
}
"""The completion of shells at Tab after ``firstlight sweep --sh``; zsh completes in its line editor only."""


@pytest.mark.parametrize("shell", [shell for shell in WORDS if shutil.which(shell)])
def test_shells_complete_with_the_script(command: Command, tmp_path: Path, shell: str) -> None:
    (tmp_path / "script").write_text(command("completion", shell).stdout)
    (tmp_path / "firstlight").write_text(f'#!/bin/sh\nexec {shlex.join(argv([]))} "$@"\n')
    (tmp_path / "firstlight").chmod(0o755)
    path = os.pathsep.join((str(tmp_path), os.environ["PATH"]))
    done = subprocess.run(
        [shell, "-c", f"source ./script; {WORDS[shell]}"],
        cwd=tmp_path,
        env={**environment(), "PATH": path, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "--shard" in done.stdout.splitlines()[-1], done.stderr


def test_list_names_every_reproduction(command: Command) -> None:
    shown = command("list").stdout
    for name in (
        "fig02a",
        "fig02b",
        "fig03",
        "fig04-variants-static",
        "fig08-static-voq",
        "fig09-dynamic-voq",
        "fig11-dynamic-voq-retcp",
    ):
        assert f"etalon/{name}" in shown


def test_hosts_is_a_key_of_the_experiment(small: Path, command: Command) -> None:
    done = command("inspect", small, "--hosts", "linux", "--json")
    assert json.loads(done.stdout)["spec"]["hosts"]["kind"] == "linux"
    assert done.stdout == command("inspect", small, "--set", "hosts.kind=linux", "--json").stdout


def test_set_replaces_a_key_of_the_file(small: Path, command: Command) -> None:
    done = command("inspect", small, "--set", "seed=3", "--json")
    assert json.loads(done.stdout)["spec"]["seed"] == 3
