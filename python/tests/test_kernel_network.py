"""Features of the hosts' kernel besides plain TCP: queue disciplines, MPTCP, accurate ECN."""

from pathlib import Path

import firstlight as fl
import pytest

pytestmark = pytest.mark.usefixtures("kernel")

STAR = """
name = "star"
duration = "100ms"
[fabric]
kind = "star"
hosts = 2
[hosts]
kind = "linux"
rate = "10Gbps"
delay = "5us"
mtu = "1500B"
"""


def said(folder: Path, *programs: str, more: str = "") -> dict[str, str]:
    file = folder / "star.toml"
    file.write_text(STAR + more + "".join(f"\n[[program]]\n{program}\n" for program in programs))
    return fl.run(file).programs


QUEUES = """
import socket, struct
SOCKET = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
def attribute(kind, value):
    return struct.pack("HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)
def make(kind, options=b""):
    body = struct.pack("BxHiIII", 0, 0, socket.if_nametoindex("eth0"), 0, 0xFFFFFFFF, 0)
    body += attribute(1, kind.encode() + bytes(1)) + (attribute(2, options) if options else b"")
    SOCKET.send(struct.pack("IHHII", 16 + len(body), 36, 0x1 | 0x4 | 0x100 | 0x400, 0, 0) + body)
    return -struct.unpack_from("i", SOCKET.recv(4096), 16)[0]
for kind in ("fq", "fq_codel", "codel", "dualpi2"):
    print(kind, make(kind))
print("none", make("none-such"))
"""


def test_queue_disciplines_of_a_distribution(tmp_path: Path) -> None:
    (tmp_path / "queues.py").write_text(QUEUES)
    shaped = "tc qdisc replace dev eth0 root netem delay 3ms; ping -c 1 host1 | grep -o time=3; "
    shaped += "tc qdisc replace dev eth0 root tbf rate 1mbit burst 1600 limit 9000; tc qdisc show dev eth0"
    programs = said(
        tmp_path,
        'on = "host1"\nname = "made"\nrun = "python3 -S $FIRSTLIGHT_EXPERIMENT/queues.py"',
        f'on = "host0"\nname = "shaped"\nrun = "{shaped}"',
    )
    assert programs["made"] == "fq 0\nfq_codel 0\ncodel 0\ndualpi2 0\nnone 2\n"
    assert programs["shaped"].startswith("time=3\nqdisc tbf")


TALK = """
import socket, sys
MPTCP, TCP_INFO, SOL_MPTCP, MPTCP_INFO = 262, 11, 284, 1
if sys.argv[1] == "serve":
    server = socket.socket(proto=MPTCP)
    server.bind(("", 80))
    server.listen()
    peer, _ = server.accept()
    print(len(peer.recv(1000, socket.MSG_WAITALL)))
else:
    peer = socket.socket(proto=MPTCP)
    peer.connect(("host1", 80))
    peer.sendall(bytes(1000))
    print(len(peer.getsockopt(SOL_MPTCP, MPTCP_INFO, 100)) > 0)
"""


def test_programs_talk_multipath_tcp(tmp_path: Path) -> None:
    """A connection that fell back to TCP would have no information of MPTCP."""
    (tmp_path / "talk.py").write_text(TALK)
    run = "python3 -S $FIRSTLIGHT_EXPERIMENT/talk.py"
    programs = said(
        tmp_path,
        f'on = "host1"\nname = "serve"\nrun = "{run} serve"',
        f'on = "host0"\nname = "send"\nstart = "1ms"\nrun = "{run} send"',
    )
    assert programs == {"serve": "1000\n", "send": "True\n"}


SYNS = """
import socket, threading
tap = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800))
server = socket.create_server(("", 80))
threading.Thread(target=server.accept, daemon=True).start()
while True:
    frame = tap.recv(2000)
    if frame[23] == 6 and frame[47] & 2:
        print(bin((frame[46] & 1) << 8 | frame[47] & 0xC0))
        break
"""


def test_accurate_ecn_is_negotiated(tmp_path: Path) -> None:
    """A SYN asks for it by AE, CWR and ECE together."""
    (tmp_path / "syns.py").write_text(SYNS)
    programs = said(
        tmp_path,
        'on = "host1"\nname = "syns"\nrun = "python3 -S $FIRSTLIGHT_EXPERIMENT/syns.py"',
        'on = "host0"\nstart = "1ms"\nrun = "nc -z host1 80"',
        more='\n[linux]\nsysctls = ["net.ipv4.tcp_ecn=3"]\n',
    )
    assert programs["syns"] == "0b111000000\n"
