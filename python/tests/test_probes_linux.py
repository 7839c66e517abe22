"""Probes that a real kernel's UDP sends, beside those of simulated hosts."""

from pathlib import Path

import firstlight as fl
import pandas as pd
import pytest

pytestmark = pytest.mark.usefixtures("kernel")
STAR = """
duration = "400us"
[fabric]
kind = "star"
hosts = 3
[hosts]
rate = "10Gbps"
delay = "1us"
mtu = "1500B"
[stamps]
kind = "software"
[[workload]]
kind = "probe"
from = "host0"
to = "host2"
packet = "1500B"
rate = "10Gbps"
[[workload]]
kind = "probe"
from = "host1"
to = "host2"
packet = "1500B"
interval = "100us"
start = "100us"
count = 2
[measure]
probes = true
"""
COUNTS = """
[[program]]
on = "host2"
run = "cat /proc/net/snmp"
start = "350us"
"""


def run(folder: Path, text: str, kind: str) -> fl.Result:
    file = folder / "probes.toml"
    file.write_text(text)
    return fl.run(file, {"hosts.kind": kind})


def packets(result: fl.Result) -> pd.DataFrame:
    return result.table("probe_packets")


def test_times_and_stamps_are_those_of_simulated_hosts(tmp_path: Path) -> None:
    simulated, linux = (run(tmp_path, STAR, kind) for kind in ("simulated", "linux"))
    assert simulated.digest != linux.digest, "the datagrams have ports of their own"
    pd.testing.assert_frame_equal(packets(linux), packets(simulated))
    pd.testing.assert_frame_equal(linux.table("probes"), simulated.table("probes"))
    assert len(packets(linux)) > 300


def test_a_kernel_sends_what_is_due_and_its_sockets_receive_it(tmp_path: Path) -> None:
    """A datagram of 1500 B at 7 Gb/s is due every 1714.29 ns, and a kernel counts whole ones. The other probe
    stays on simulated hosts, whose datagrams no kernel counts."""
    own = STAR.replace('start = "100us"', 'start = "100us"\nhosts = "simulated"').replace("10Gbps", "7Gbps")
    result = run(tmp_path, own + COUNTS, "linux")
    found = packets(result)
    stream = found[(found["probe"] == 0) & (found["sent_us"] < 350.0)]
    late = stream["sent_us"] * 1e3 - stream.index * 12e6 / 7e3
    assert late.between(-1e-3, 1.0).all()
    lines = [line.split() for line in result.programs["0-cat-host2"].splitlines() if line.startswith("Udp:")]
    counts = dict(zip(*lines, strict=True))
    arrived = int((stream["sent_us"] + stream["latency_us"] <= 350.0).sum())
    assert (int(counts["InDatagrams"]), counts["NoPorts"]) == (arrived, "0")
    assert result.table("probes")["received"].tolist() == [len(found) - 2, 2]
