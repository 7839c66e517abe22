"""DX on a real kernel beside simulated hosts: the option, times, queues, and what has no effect."""

import struct
from pathlib import Path

import firstlight as fl
import pytest
from conformance.trace import packets

pytestmark = pytest.mark.usefixtures("kernel")
STAR = """
duration = "100ms"
[fabric]
kind = "star"
hosts = 3
[hosts]
rate = "10Gbps"
delay = "10us"
mtu = "1500B"
[tcp]
cc = "dx"
rto_min = "10ms"
[[flows]]
from = "host0"
to = "host2"
"""
SECOND = """
[[flows]]
from = "host1"
to = "host2"
start = "3ms"
"""
QUEUE = """
[measure]
queues = ["host2.port"]
queue_samples = "100us"
"""
NOISE = """
[stamps]
kind = "hardware"
[dx]
headroom = "8.4us"
"""


def both(folder: Path, text: str) -> list[fl.Result]:
    """The experiment on simulated and on Linux hosts, stored."""
    file = folder / "dx.toml"
    file.write_text(text)
    return [fl.run(file, {"hosts.kind": kind}, out=folder / kind) for kind in ("simulated", "linux")]


def test_a_flow_takes_as_long_on_both(tmp_path: Path) -> None:
    runs = both(tmp_path, STAR + 'size = "10MB"\n' + QUEUE)
    times = [run.summary["fct_mean_us"] for run in runs]
    assert times[1] == pytest.approx(times[0], rel=1e-3)


def test_two_flows_keep_the_same_queue(tmp_path: Path) -> None:
    simulated, linux = (r.summary for r in both(tmp_path, STAR + SECOND + NOISE + QUEUE))
    assert linux["queue_mean_packets"] == pytest.approx(simulated["queue_mean_packets"], rel=0.1)
    assert linux["queue_utilization_pct"] == pytest.approx(simulated["queue_utilization_pct"], abs=1)
    assert linux["retransmits"] == simulated["retransmits"] == 0


def test_a_headroom_above_all_queues_leaves_the_window_to_slow_start(tmp_path: Path) -> None:
    """The module's parameters have an effect."""
    file = tmp_path / "dx.toml"
    file.write_text(STAR + SECOND + QUEUE)
    short, long = (
        fl.run(file, {"hosts.kind": "linux", "dx.headroom": headroom}).summary["queue_mean_packets"]
        for headroom in ("2us", "200us")
    )
    assert long > 5 * short


def options_of(run: fl.Result) -> list[tuple[int, int, int, list[int]]]:
    """Of each packet at the sender: its size, its header's, its window, and its last option's timestamps."""
    assert isinstance(run.capture, Path)
    found = []
    for _, _, ip in packets(run.capture):
        options = ip.data.opts
        at = options.index(bytes([1, 1, 253, 14]))
        assert at == len(options) - 16, "the option is the last, and whole"
        found.append((ip.len, 4 * ip.data.off, ip.data.win, list(struct.unpack(">III", options[at + 4 :]))))
    return found


def test_packets_are_the_same_on_both(tmp_path: Path) -> None:
    """Sizes of packets and headers, windows, and all timestamps, of the handshake and the first flights, but
    for the nanosecond to which a kernel's time is rounded."""
    text = STAR + 'size = "100kB"\n[measure]\ncapture = true\ncapture_side = "sender"\n'
    simulated, linux = (options_of(run)[:40] for run in both(tmp_path, text))
    assert [row[:3] for row in linux] == [row[:3] for row in simulated]
    assert simulated[0][:2] == (76, 56) and 1500 in {size for size, *_ in simulated}
    assert sum(any(stamps[1:]) for *_, stamps in simulated) > 5, "ACKs echo"
    for (*_, one), (*_, other) in zip(simulated, linux, strict=True):
        assert one == pytest.approx(other, abs=10)
