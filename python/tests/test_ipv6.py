"""IPv6 on Linux hosts: routed, marked and captured as IPv4 is; not there unless asked for."""

import socket
import struct
from pathlib import Path

import firstlight as fl
import pytest

pytestmark = pytest.mark.usefixtures("kernel")

# Two senders into one port, which marks.
STAR = """
name = "star"
duration = "200ms"
[fabric]
kind = "star"
hosts = 3
[hosts]
kind = "linux"
rate = "10Gbps"
delay = "5us"
mtu = "1500B"
[switch]
queue = 200
ecn = 20
[tcp]
cc = "dctcp"
[linux]
ipv6 = true
"""
TRANSFER = """
import socket, sys
if sys.argv[1] == "serve":
    server = socket.create_server(("::", 80), family=socket.AF_INET6)
    for _ in range(2):
        peer, address = server.accept()
        count = 0
        while data := peer.recv(1 << 20):
            count += len(data)
        print(address[0], count, flush=True)
else:
    with socket.create_connection(("fd00::a00:3", 80)) as peer:
        peer.sendall(bytes(2_000_000))
"""


def star(folder: Path, text: str, *programs: str) -> Path:
    file = folder / "star.toml"
    file.write_text(text + "".join(f"\n[[program]]\n{program}\n" for program in programs))
    return file


def packets(file: Path) -> list[bytes]:
    """The packets of a capture."""
    content, at, found = file.read_bytes(), 0, []
    while at < len(content):
        kind, length = struct.unpack_from("<II", content, at)
        if kind == 6:
            (captured,) = struct.unpack_from("<I", content, at + 20)
            found.append(content[at + 28 : at + 28 + captured])
        if kind == 1:
            assert struct.unpack_from("<H", content, at + 8) == (12,), "raw IP of both versions"
        at += length
    return found


def test_programs_talk_ipv6_over_the_fabric(tmp_path: Path) -> None:
    (tmp_path / "transfer.py").write_text(TRANSFER)
    run = "python3 -S $FIRSTLIGHT_EXPERIMENT/transfer.py"
    send = f'start = "2ms"\nrun = "{run} send"'
    file = star(
        tmp_path,
        STAR,
        f'on = "host2"\nname = "serve"\nrun = "{run} serve"',
        f'on = "host0"\n{send}',
        f'on = "host1"\n{send}',
        'on = "host0"\nname = "ping"\nrun = "getent ahosts host1; ping -6 -c 2 -i 0.01 host1"',
        'on = "host1"\nname = "alone"\nrun = "ip -6 -o addr show dev eth0; ip -6 route"',
    )
    result = fl.run(file, out=tmp_path / "r", capture=True)
    assert sorted(result.programs["serve"].split()) == ["2000000", "2000000", "fd00::a00:1", "fd00::a00:2"]
    assert "2 packets transmitted, 2 received" in result.programs["ping"]
    assert "fd00::a00:2" in result.programs["ping"] and "10.0.0.2" in result.programs["ping"]
    alone = result.programs["alone"]
    assert alone.count("inet6") == 1 and "inet6 fd00::a00:2/104 scope global" in alone
    frames = result.manifest["hosts"]["frames"]
    assert [frames[name] for name in ("not_ip", "malformed", "elsewhere")] == [0, 0, 0]

    seen = [packet for packet in packets(tmp_path / "r" / "capture.pcapng") if packet[0] >> 4 == 6]
    assert {packet[6] for packet in seen} == {socket.IPPROTO_TCP, socket.IPPROTO_ICMPV6}
    hosts = {socket.inet_ntop(socket.AF_INET6, packet[8:24]) for packet in seen}
    assert hosts == {"fd00::a00:1", "fd00::a00:2", "fd00::a00:3"}
    echoes = [packet for packet in seen if packet[6] == socket.IPPROTO_TCP and packet[53] & 0x40]
    assert len(echoes) > 10, "DCTCP echoes the marks of the switch"
    assert result.digest == fl.run(file).digest


def test_there_is_no_ipv6_unless_asked_for(tmp_path: Path) -> None:
    tries = "python3 -c 'import socket; socket.socket(socket.AF_INET6)' 2>&1 | tail -1; cat /etc/hosts"
    file = star(tmp_path, STAR.replace("ipv6 = true", ""), f'on = "host0"\nname = "tries"\nrun = "{tries}"')
    said = fl.run(file).programs["tries"]
    assert "not supported by protocol" in said and ":" not in said.splitlines()[1]


def test_ipv6_needs_its_least_mtu(tmp_path: Path) -> None:
    file = star(tmp_path, STAR.replace("1500B", "1279B"), 'on = "host0"\nrun = "true"')
    with pytest.raises(fl.SpecError, match=r"linux\.ipv6: IPv6 needs an MTU of 1280B, and host0 has 1279B"):
        fl.run(file)
