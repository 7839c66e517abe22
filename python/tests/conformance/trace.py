"""A packet capture as rows, for conformance scenarios."""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import dpkt

SYN, PSH, ACK, ECE, CWR = 0x02, 0x08, 0x10, 0x40, 0x80
SENDER = 0


@dataclass(frozen=True)
class Row:
    """One TCP packet at the edge of one host."""

    at_us: float
    host: int
    """The host at whose edge the packet was captured."""
    src: int
    """The host that sent the packet."""
    flags: int
    seq: int
    """Sequence number relative to its sender's initial one, modulo 2**32."""
    ack: int
    """Acknowledgement number relative to the other end's initial sequence number, modulo 2**32."""
    payload: int
    ecn: int
    options: frozenset[int]
    """Kinds of the TCP options."""

    @property
    def is_data(self) -> bool:
        return self.payload > 0

    def has(self, flags: int) -> bool:
        """Whether all of ``flags`` are set."""
        return self.flags & flags == flags


def read(file: Path) -> list[Row]:
    """The TCP packets in the capture of a run on a star with one flow, captured at both ends or one."""
    initial: dict[int, int] = {}
    rows = []
    for at, host, ip in packets(file):
        tcp = ip.data
        if not isinstance(tcp, dpkt.tcp.TCP):
            continue
        src = ip.src[3] - 1
        dst = ip.dst[3] - 1
        if tcp.flags & SYN:
            initial[src] = tcp.seq
        options = frozenset(kind for kind, _ in dpkt.tcp.parse_opts(tcp.opts))
        rows.append(
            Row(
                at * 1e6,
                host,
                src,
                tcp.flags,
                (tcp.seq - initial.get(src, 0)) % 2**32,
                (tcp.ack - initial.get(dst, 0)) % 2**32,
                ip.len - 4 * ip.hl - 4 * tcp.off,
                ip.tos & 3,
                options,
            )
        )
    return rows


def in_order(rows: list[Row], receiver: int, at_us: Sequence[float]) -> list[int]:
    """In-order bytes of the flow's data at the receiver at each of these moments, which rise."""
    arrived = iter([r for r in rows if r.host == receiver and r.src == SENDER and r.is_data])
    early: dict[int, int] = {}
    """Ends of data beyond a gap, by their starts."""
    due, told = 1, []
    row = next(arrived, None)
    for moment in at_us:
        while row is not None and row.at_us <= moment:
            early[row.seq] = max(early.get(row.seq, 0), row.seq + row.payload)
            while due in early:
                due = early.pop(due)
            row = next(arrived, None)
        told.append(due - 1)
    return told


def packets(file: Path) -> Iterator[tuple[float, int, dpkt.ip.IP]]:
    """Seconds, host, and IP packet of every packet: the enhanced packet blocks of a little-endian pcapng
    section with nanosecond stamps (dpkt's own reader does not tell the interface, which is the host here)."""
    data, at = file.read_bytes(), 0
    while at < len(data):
        kind, length = struct.unpack_from("<II", data, at)
        if kind == 6:
            host, high, low, size = struct.unpack_from("<IIII", data, at + 8)
            yield (high << 32 | low) * 1e-9, host, dpkt.ip.IP(data[at + 28 : at + 28 + size])
        at += length


def hosts(rows: list[tuple[float, int, dpkt.ip.IP]]) -> dict[bytes, int]:
    """The host of each address in a capture at both ends: its first packet is seen there first."""
    found: dict[bytes, int] = {}
    for _, host, ip in rows:
        found.setdefault(ip.src, host)
    return found


def flights(rows: list[Row], gap_us: float) -> list[list[Row]]:
    """Rows in groups that a pause longer than ``gap_us`` separates."""
    groups: list[list[Row]] = []
    for row in rows:
        if not groups or row.at_us - groups[-1][-1].at_us > gap_us:
            groups.append([])
        groups[-1].append(row)
    return groups
