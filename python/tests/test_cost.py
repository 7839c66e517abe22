"""``firstlight inspect --cost`` and ``fl.cost``: what a run takes, from its first seconds."""

import json
import re
import subprocess
import sys
from pathlib import Path

import firstlight as fl
import pytest
from conftest import Command
from firstlight.cli import progress
from firstlight.runs.cost import _extrapolated, _Sample
from firstlight.runs.run import run_into


def test_a_short_run_is_measured(small: Path) -> None:
    whole = fl.cost(small)
    assert whole.part == 1.0
    assert whole.packet_hops == fl.run(small).manifest["counts"]["packet_hops"]


def test_a_long_run_is_estimated_from_its_beginning(small: Path) -> None:
    lasting = {"duration": "60s"}
    estimate = fl.cost(small, lasting, budget=0.2)
    assert 0 < estimate.part < 0.5
    shorter = fl.cost(small, {"duration": "1s"}, budget=float("inf"))
    assert estimate.packet_hops == pytest.approx(60 * shorter.packet_hops, rel=0.1)
    assert estimate.seconds > 1


def test_a_run_that_its_flows_end_is_estimated_by_their_bytes(tmp_path: Path) -> None:
    file = tmp_path / "unequal.toml"
    file.write_text("""\
name = "unequal"
duration = "60s"

[fabric]
kind = "star"
hosts = 3

[hosts]
rate = "10Gbps"

[[flows]]
from = "host0"
to = "host1"
count = 50
total = "1MB"

[[flows]]
from = "host0"
to = "host2"
total = "40GB"
""")
    estimate = fl.cost(file, budget=0.2)
    assert 0 < estimate.part < 0.9, "the 50 flows that are complete are no such part"
    counts = fl.run(file).manifest["counts"]
    assert estimate.packet_hops == pytest.approx(counts["packet_hops"], rel=0.1)


def test_the_rest_goes_on_as_the_second_half() -> None:
    samples = [_Sample(1.0, 0.05, 100, 10), _Sample(2.0, 0.1, 600, 20), _Sample(4.0, 0.3, 1000, 30)]
    cost = _extrapolated(samples)
    assert (cost.packet_hops, cost.memory, cost.part) == (2400, 65, 0.3)
    assert cost.seconds == pytest.approx(11.0)
    alone = _extrapolated([_Sample(3.0, 0.5, 7, 0)])
    assert (alone.packet_hops, alone.seconds) == (14, 6.0)


def test_the_command_says_how_it_knows(small: Path, command: Command) -> None:
    done = command("inspect", small, "--cost")
    assert done.returncode == 0
    assert "cost of a run on this machine, measured:" in done.stdout
    assert "packet-hops: " in done.stdout
    assert json.loads(command("inspect", small, "--cost", "--json").stdout)["part"] == 1.0


def test_a_long_run_says_first_what_it_takes(
    small: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    experiment = fl.core.Spec.read(small, {"duration": "2s"}).check()
    monkeypatch.setattr("firstlight.runs.cost.BUDGET", 0.1)

    def said(long: float) -> list[str]:
        monkeypatch.setattr(progress, "LONG", long)
        monkeypatch.setattr(progress, "QUIET_PERIOD", 0.0)
        with progress.Tracker("running small") as tracker:
            watched = progress.Forecast(tracker).on_part
            run_into(tmp_path / "r", experiment, progress=tracker.on_fraction, watched=watched)
        return [line for line in capfd.readouterr().err.splitlines() if "takes about" in line]

    assert said(1e9) == []
    (line,) = said(0.0)
    found = re.fullmatch(
        r"running small takes about \d+ s, ([\d,]+) packet-hops and [\d,]+ MB of memory "
        r"\(estimated from its first [\d.]+ %\)",
        line,
    )
    assert found
    counts = fl.load(tmp_path / "r").manifest["counts"]
    assert int(found[1].replace(",", "")) == pytest.approx(counts["packet_hops"], rel=0.3)


def test_linux_hosts_are_not_estimated(small: Path, command: Command) -> None:
    done = command("inspect", small, "--cost", "--hosts", "linux")
    assert done.returncode == 2
    assert "the cost of Linux hosts is not estimated" in done.stderr


def test_benchmarks_measure_a_run() -> None:
    benches = Path(__file__).parents[2] / "benches"
    options = ["--set", '{"duration": "2ms"}']
    command = [sys.executable, str(benches / "ours.py"), str(benches / "incast.toml"), *options]
    sample = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    assert sample["packet_hops"] > 0 and sample["user_cpu_s"] > 0
