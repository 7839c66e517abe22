"""Lossless Ethernet from the command line and from Python."""

from pathlib import Path

import firstlight as fl
import pytest
from conftest import Command

ROOT = Path(__file__).resolve().parents[2]
INCAST = ROOT / "crates/lab/tests/specs/lossless.toml"
RED = {"switch.red.min": 5, "switch.red.max": 10, "switch.red.drop_beyond": False}


def test_causes_add_up_to_the_pauses() -> None:
    result = fl.run(INCAST)
    assert result.invalid == []
    pauses, causes = result.table("pauses"), result.table("pause_causes")
    assert result.summary["pauses"] == pauses["pauses"].sum() == causes["pauses"].sum() > 0
    assert causes["paused_us"].sum() == pytest.approx(pauses["paused_us"].sum())
    assert set(pauses["state"]) <= {"paused", "not reached", "no traffic", "off"}


def test_a_buffer_that_is_too_small_names_its_link_and_bytes() -> None:
    with pytest.raises(fl.SpecError, match=r"pfc\.buffer: on the link left->right .* are missing"):
        fl.run(INCAST, {"pfc.buffer": "61kB"})


def test_an_invalid_run_is_stored_and_ends_with_1(command: Command, tmp_path: Path) -> None:
    settings = [word for key, value in RED.items() for word in ("--set", f"{key}={str(value).lower()}")]
    done = command("run", INCAST, *settings, "--out", "kept")
    assert done.returncode == 1
    assert "this run is invalid" in done.stderr
    stored = fl.load(tmp_path / "kept")
    assert len(stored.invalid) == 1
    assert stored.invalid[0] in stored.warnings
    assert command("run", INCAST, *settings, "--set", "pfc.allow_loss=true", "--out", "other").returncode == 0
