"""The output of ``firstlight doctor``."""

import json
from pathlib import Path

import pytest
from conftest import Command
from firstlight.linux import doctor, installed, tools


def test_doctor_lists_what_this_machine_can_run(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FIRSTLIGHT_CACHE", str(tmp_path))
    done = command("doctor")
    assert done.returncode == 0, done.stderr
    assert "simulated hosts: yes" in done.stdout
    assert "Linux hosts, virtual time: no" in done.stdout
    assert "firstlight kernel build" in done.stdout
    assert "Linux hosts, dilated time: no" in done.stdout


def test_as_json_it_is_complete(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIRSTLIGHT_CACHE", str(tmp_path))
    done = command("doctor", "--json")
    told = json.loads(done.stdout)
    assert told["able"]["simulated hosts"] is True
    for check in told["checks"]:
        assert check["ok"] or check["todo"], f"{check['name']} is missing, and nobody says what to do"


def test_a_missing_part_has_its_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIRSTLIGHT_CACHE", str(tmp_path))
    monkeypatch.setattr(tools, "PATH", str(tmp_path))
    monkeypatch.setattr(installed, "ENGINE", tmp_path / "engine.so")
    checks = {check.name: check for check in doctor.virtual()}
    assert checks["tools to build kernels"].todo.startswith("apt install ")
    assert "bison" in checks["tools to build kernels"].found
    assert not checks["engine for kernels"].ok
    assert not checks["kernel"].ok and "tick of 4 ms" in checks["kernel"].found
    assert not checks["iproute2"].ok and not checks["iproute2"].needed


def test_only_needed_checks_decide() -> None:
    checks = [
        doctor.Check("a", "x", True, ""),
        doctor.Check("a", "y", False, "", needed=False),
        doctor.Check("b", "x", False, ""),
    ]
    assert doctor.able(checks) == {"a": True, "b": False}
