"""Lossless Ethernet from the command line and from Python."""

from pathlib import Path

import firstlight as fl
import pytest
from click.testing import CliRunner
from firstlight.cli import app

ROOT = Path(__file__).resolve().parents[2]
INCAST = ROOT / "crates/lab/tests/specs/lossless.toml"
RED = {"switch.red.min": 5, "switch.red.max": 10, "switch.red.weight": 1.0}


def test_causes_add_up_to_the_pauses() -> None:
    result = fl.run(INCAST)
    assert result.invalid == []
    pauses, causes = result.table("pauses"), result.table("pause_causes")
    assert result.summary["pauses"] == pauses["pauses"].sum() == causes["pauses"].sum() > 0
    assert causes["paused_us"].sum() == pytest.approx(pauses["paused_us"].sum())
    assert set(pauses["state"]) <= {"paused", "not reached", "no traffic", "off"}


def test_a_buffer_that_is_too_small_names_its_link_and_bytes() -> None:
    with pytest.raises(fl.SpecError, match=r"pfc\.buffer: .* too small on the link left->right"):
        fl.run(INCAST, {"pfc.buffer": "61kB"})


def test_an_invalid_run_is_stored_and_ends_with_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reason = "it measured something else"
    monkeypatch.setattr(fl.Result, "invalid", [reason])
    done = CliRunner().invoke(app, ["run", str(INCAST), "--out", str(tmp_path / "kept")])
    assert done.exit_code == 1
    assert f"this run is invalid: {reason}" in done.output
    monkeypatch.undo()
    assert fl.load(tmp_path / "kept").invalid == []


def test_red_drops_nothing_where_nothing_may_be_lost() -> None:
    result = fl.run(INCAST, RED)
    assert (result.summary["dropped_packets"], result.invalid) == (0, [])
    with pytest.raises(fl.SpecError, match=r"drop_beyond: RED drops packets of a lossless class"):
        fl.run(INCAST, {**RED, "switch.red.drop_beyond": True})
    allowed = {**RED, "switch.red.drop_beyond": True, "pfc.allow_loss": True}
    assert fl.run(INCAST, allowed).summary["pause_lost_packets"] > 0


SLOW = {"adapter.drain": "2Gbps", "adapter.receive_buffer": "30kB", "pfc.xoff": "15kB"}


def test_a_slow_host_is_the_root_of_the_pauses() -> None:
    result = fl.run(INCAST, SLOW)
    assert (result.summary["dropped_packets"], result.invalid) == (0, [])
    states = result.table("pauses").query("name == 'host4.port'")["state"]
    assert list(states) == ["paused"]
    causes = result.table("pause_causes")
    assert set(causes.query("name == 'host4.port'")["root"]) == {"host4.adapter"}
    assert "host4.adapter" in set(causes.query("name == 'host1.nic'")["root"])
    assert fl.inspect(INCAST, SLOW)["adapter"]["links_to_hosts"][0]["xoff_bytes"] == 20_346
    lossy = fl.run(INCAST, {**SLOW, "pfc.kind": "off"})
    assert lossy.table("ports").query("name == 'host4.adapter'")["dropped"].sum() > 0


def test_a_receive_buffer_that_is_too_small_names_its_link_and_bytes() -> None:
    with pytest.raises(fl.SpecError, match=r"receive_buffer: .* 654B too small on the link host0\.port"):
        fl.run(INCAST, {**SLOW, "adapter.receive_buffer": "9kB"})
    with pytest.raises(fl.SpecError, match=r"adapter\.receive_buffer: .* add adapter\.drain"):
        fl.run(INCAST, {"adapter.receive_buffer": "9kB"})
    shown = CliRunner().invoke(app, ["inspect", str(INCAST), "--set", "adapter.drain=10Gbps"])
    assert shown.exit_code == 0
    assert "links_to_hosts" in shown.output
    assert "receive buffers never fill" in " ".join(shown.output.split())
