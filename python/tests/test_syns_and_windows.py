"""Keys with which DCTCP is rolled out, by their effect on both kinds of hosts: ECT on SYNs, and the least and
largest congestion window."""

from pathlib import Path

import firstlight as fl
import pytest

INCAST = """
duration = "60ms"
[fabric]
kind = "star"
hosts = 22
[hosts]
rate = "10Gbps"
delay = "1us"
mtu = "1500B"
[switch]
queue = 500
ecn = 8
drop_non_ect = 1.0
[tcp]
cc = "dctcp"
ecn = true
ect_syn = "both"
[[workload]]
kind = "incast"
senders = {senders}
to = "host0"
size = "10MB"
"""
LATE = """
[[flows]]
from = "host{src}"
to = "host{dst}"
size = "1kB"
start = "20ms"
"""


@pytest.fixture(params=["simulated", "linux"])
def kind(request: pytest.FixtureRequest) -> str:
    """Each kind of hosts; Linux hosts need the kernel."""
    if request.param == "linux":
        request.getfixturevalue("kernel")
    return str(request.param)


def run(folder: Path, kind: str, text: str, settings: dict[str, object]) -> fl.Result:
    file = folder / "incast.toml"
    file.write_text(text)
    return fl.run(file, {"hosts.kind": kind, **settings})


@pytest.mark.parametrize(
    ("value", "to_busy", "from_busy"),
    [("none", False, False), ("syn_ack", False, True), ("both", True, True)],
)
def test_syns_pass_a_port_that_marks_where_they_are_ecn_capable(
    kind: str, value: str, to_busy: bool, from_busy: bool, tmp_path: Path
) -> None:
    """The port to host 0 is beyond its threshold all the time, and drops what it cannot mark: the SYN of a
    connection to host 0, and the SYN-ACK of one from host 0."""
    text = INCAST.format(senders=20) + LATE.format(src=21, dst=0) + LATE.format(src=0, dst=21)
    # The incast's own handshakes come before there is a queue.
    flows = run(tmp_path, kind, text, {"tcp.ect_syn": value}).flows
    late = flows[flows["size_bytes"] == 1000]
    connected = late["established_us"].notna()
    assert dict(zip(late["dst"], connected, strict=True)) == {0: to_busy, 21: from_busy}


@pytest.mark.parametrize("floor", [2, 1])
@pytest.mark.parametrize("cc", ["newreno", "cubic", "dctcp"])
def test_marks_shrink_windows_to_the_floor_that_is_set(
    kind: str, cc: str, floor: int, tmp_path: Path
) -> None:
    """Twenty senders are marked all the time: their windows end at the floor. These are the controls of Linux
    hosts whose floor can be set."""
    settings: dict[str, object] = {
        "tcp.cc": cc,
        "tcp.ect_syn": "both" if cc == "dctcp" else "none",
        "tcp.min_window": floor,
    }
    flows = run(tmp_path, kind, INCAST.format(senders=20), settings).flows
    assert flows["timeouts"].sum() == 0
    assert flows["cwnd_packets"].min() == floor


def test_windows_stop_at_the_cap(kind: str, tmp_path: Path) -> None:
    """A sender alone would grow far beyond it."""
    flows = run(
        tmp_path, kind, INCAST.format(senders=1), {"tcp.max_window": 5, "tcp.initial_window": 4}
    ).flows
    assert flows["cwnd_packets"].max() == 5
