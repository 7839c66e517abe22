"""Captures as rows, and where two of them part.

Packets are compared as they arrive. A kernel gives a packet to the interface when that has sent others (TCP
small queues), a simulated host when it may be sent: that is the same on the wire. The order in which packets
arrive counts at each end; between the two ends their times do.
"""

from dataclasses import dataclass
from pathlib import Path

import dpkt
from conformance import trace

SACK = 5
AT_ONCE_US = 1.0
"""Packets that no timer sends arrive at the same time within this."""
TICK_US = 4000.0
"""Packets that a timer sends arrive within a tick of the hosts' clocks."""
TIMED_US = 900.0
"""A packet that arrives at least so long after the one before may have been sent by a timer."""


@dataclass(frozen=True)
class Row:
    """A TCP packet of one connection as it arrives at its host."""

    at_us: float
    sent: bool
    """It comes from the host that opened the connection."""
    flags: int
    seq: int
    """Relative to the first of its sender."""
    ack: int
    payload: int
    window: int
    """As in the header."""
    ecn: int
    sacks: tuple[tuple[int, int], ...]
    """Relative to the first sequence number of the other end."""

    @property
    def fields(self) -> dict[str, object]:
        """The fields that must be equal, in the order in which differences are named."""
        return {
            "end": "data" if self.sent else "ack",
            "seq": self.seq,
            "payload": self.payload,
            "ack": self.ack,
            "flags": self.flags,
            "ecn": self.ecn,
            "sacks": self.sacks,
            "window": self.window,
        }


Connection = tuple[int, int, int, int]
"""Hosts and ports of a connection, seen from the host that opened it."""


@dataclass(frozen=True)
class Difference:
    """The first packet that differs between two captures."""

    kind: str
    """The difference, the sender of the packet, and whether something was lost before."""
    connection: Connection
    number: int
    """The packet's number in the connection."""
    simulated: Row | None
    linux: Row | None


def blocks(tcp: dpkt.tcp.TCP, first: int) -> tuple[tuple[int, int], ...]:
    """The blocks of SACK of a segment, relative to the first sequence number of the other end."""
    return tuple(
        (
            (int.from_bytes(data[i : i + 4]) - first) % 2**32,
            (int.from_bytes(data[i + 4 : i + 8]) - first) % 2**32,
        )
        for kind, data in dpkt.tcp.parse_opts(tcp.opts)
        if kind == SACK
        for i in range(0, len(data), 8)
    )


def read(file: Path) -> dict[Connection, list[Row]]:
    """The packets of each connection, in order, from a capture at both ends."""
    packets = list(trace.packets(file))
    hosts = trace.hosts(packets)
    first: dict[Connection, int] = {}
    rows: dict[Connection, list[Row]] = {}
    for at, host, ip in packets:
        tcp = ip.data
        if not isinstance(tcp, dpkt.tcp.TCP):
            continue
        way = (hosts[ip.src], tcp.sport, hosts.get(ip.dst, -1), tcp.dport)
        back = way[2:] + way[:2]
        if tcp.flags & trace.SYN:
            first[way] = tcp.seq
            if not tcp.flags & trace.ACK:
                rows.setdefault(way, [])
        sent = way in rows
        if host != way[2]:
            continue
        ours, theirs = first.get(way, 0), first.get(back, 0)
        rows[way if sent else back].append(
            Row(
                at * 1e6,
                sent,
                tcp.flags,
                (tcp.seq - ours) % 2**32,
                (tcp.ack - theirs) % 2**32 if tcp.flags & trace.ACK else 0,
                ip.len - 4 * ip.hl - 4 * tcp.off,
                tcp.win,
                ip.tos & 3,
                blocks(tcp, theirs),
            )
        )
    return rows


def difference(
    simulated: dict[Connection, list[Row]], linux: dict[Connection, list[Row]], *, windows: bool = True
) -> Difference | None:
    """The earliest packet that differs; none where all are equal. ``windows``: offered windows count."""
    found = [
        parted
        for connection in sorted(simulated.keys() | linux.keys())
        if (parted := _parted(connection, simulated.get(connection, []), linux.get(connection, []), windows))
    ]
    return min(found, key=_moment, default=None)


def _moment(found: Difference) -> float:
    return min(row.at_us for row in (found.simulated, found.linux) if row)


def _parted(
    connection: Connection, simulated: list[Row], linux: list[Row], windows: bool
) -> Difference | None:
    late, lossy, highest = 0.0, False, 0
    before: tuple[Row, Row] | None = None
    linux = linux.copy()
    for number in range(max(len(simulated), len(linux))):
        if number < len(simulated):
            _order(linux, number, simulated[number], late)
        ours, theirs = (rows[number] if number < len(rows) else None for rows in (simulated, linux))
        what = None
        if ours is None or theirs is None:
            what = "one side ends"
        else:
            what = _field(ours, theirs, windows)
            apart = theirs.at_us - ours.at_us - late
            if what is None and abs(apart) > AT_ONCE_US:
                gap = min(ours.at_us - before[0].at_us, theirs.at_us - before[1].at_us) if before else 0.0
                late += apart
                what = None if gap >= TIMED_US and abs(apart) <= TICK_US else "time"
        if what:
            row = ours or theirs
            assert row is not None
            who = "data" if row.sent else "ack"
            phase = "after a loss" if lossy else "handshake" if number < 3 else "before any loss"
            return Difference(f"{what} of {who} {phase}", connection, number, ours, theirs)
        assert ours is not None and theirs is not None
        before = (ours, theirs)
        lossy |= bool(ours.sacks) or (ours.sent and ours.payload > 0 and ours.seq < highest)
        if ours.sent:
            highest = max(highest, ours.seq + ours.payload)
    return None


def _order(linux: list[Row], number: int, ours: Row, late: float) -> None:
    """Of packets that arrive at both ends at once, brings the one forward that arrives where ours does."""
    for later in range(number, len(linux)):
        row = linux[later]
        if abs(row.at_us - ours.at_us - late) > AT_ONCE_US:
            return
        if row.sent == ours.sent:
            linux.insert(number, linux.pop(later))
            return


def _field(ours: Row, theirs: Row, windows: bool) -> str | None:
    a, b = ours.fields, theirs.fields
    return next((name for name in a if a[name] != b[name] and (windows or name != "window")), None)
