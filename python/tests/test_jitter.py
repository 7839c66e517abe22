"""``hosts.jitter`` on both kinds of hosts."""

from pathlib import Path

import firstlight as fl
import pytest
from firstlight.linux.kernels import Kernel

TEXT = """
duration = "20ms"
[fabric]
kind = "star"
hosts = 2
[hosts]
rate = "10Gbps"
delay = "5us"
mtu = "1500B"
jitter = { kind = "exponential", mean = "20us" }
[[flows]]
from = "host0"
to = "host1"
size = "10kB"
"""


def test_both_kinds_of_hosts_draw_the_same_delays(tmp_path: Path, kernel: Kernel) -> None:
    path = tmp_path / "noise.toml"
    path.write_text(TEXT)
    runs = {kind: fl.run(path, {"hosts.kind": kind}) for kind in ("simulated", "linux")}
    simulated, linux = (run.table("flows")["fct_us"][0] for run in runs.values())
    assert simulated > 100, "39.7 us without jitter"
    assert linux == pytest.approx(simulated, abs=0.05)
    assert fl.run(path, {"hosts.kind": "linux"}).manifest["digest"] == runs["linux"].manifest["digest"]
