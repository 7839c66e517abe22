"""Shows the first packet that a host sends otherwise than on the other kind of hosts, and what it saw.

``python -m differential.sends SEED NUMBER...`` runs drawn cases on both kinds of hosts, with captures at both
ends. What arrives elsewhere follows from what hosts send: the earliest such packet is closest to the cause.
"""

import argparse
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory

import dpkt
import firstlight
from conformance import trace

from .__main__ import KINDS
from .case import Case, draw, draw_other
from .packets import Connection, blocks

AT_ONCE_US = 0.5
"""Packets that are sent within this of each other are sent at the same time."""
PSH = 8


@dataclass(frozen=True)
class Packet:
    """A TCP packet as a host sends or gets it, its numbers relative to the first of each end."""

    at_us: float
    host: int
    way: Connection
    """Hosts and ports, the sender's first; host -1 has sent nothing."""
    sent: bool
    seq: int
    payload: int
    ack: int
    window: int
    flags: int
    sacks: tuple[tuple[int, int], ...]


def seen(text: str, kind: str) -> list[Packet]:
    """Runs an experiment on hosts of this kind: what each host sends and gets, in order."""
    with TemporaryDirectory(prefix="differential-") as folder:
        file = Path(folder) / "case.toml"
        file.write_text(text, encoding="utf-8")
        overrides = {"hosts.kind": kind, "measure.capture_side": "both"}
        result = firstlight.run(file, overrides, out=Path(folder) / kind, capture=True)
        assert isinstance(result.capture, Path)
        return read(result.capture)


def read(file: Path) -> list[Packet]:
    """The packets of a capture at both ends."""
    rows = list(trace.packets(file))
    hosts = trace.hosts(rows)
    first: dict[Connection, int] = {}
    found = []
    for at, host, ip in rows:
        tcp = ip.data
        if not isinstance(tcp, dpkt.tcp.TCP):
            continue
        way = (hosts[ip.src], tcp.sport, hosts.get(ip.dst, -1), tcp.dport)
        if tcp.flags & trace.SYN:
            first[way] = tcp.seq
        ours, theirs = first.get(way, 0), first.get(way[2:] + way[:2], 0)
        found.append(
            Packet(
                at * 1e6,
                host,
                way,
                host == way[0],
                (tcp.seq - ours) % 2**32,
                ip.len - 4 * ip.hl - 4 * tcp.off,
                (tcp.ack - theirs) % 2**32 if tcp.flags & trace.ACK else 0,
                tcp.win,
                tcp.flags,
                blocks(tcp, theirs),
            )
        )
    return found


def earliest(simulated: list[Packet], linux: list[Packet]) -> tuple[float, Connection] | None:
    """When, and on which way of a connection, a host first sends another packet."""
    found = []
    for way in {packet.way for packet in simulated + linux}:
        sides = ([p for p in packets if p.sent and p.way == way] for packets in (simulated, linux))
        for ours, theirs in zip_longest(*sides):
            if ours is None or theirs is None:
                found.append(((ours or theirs).at_us, way))
                break
            same = replace(theirs, at_us=ours.at_us) == ours
            if not same or abs(ours.at_us - theirs.at_us) > AT_ONCE_US:
                found.append((min(ours.at_us, theirs.at_us), way))
                break
    return min(found, default=None)


def view(packets: list[Packet], way: Connection, at_us: float, before: int, after: int) -> list[str]:
    """The packets that the sender of ``way`` sent and got of this connection around a moment; bursts are one
    line."""
    host, back = way[0], way[2:] + way[:2]
    lines: list[tuple[float, str]] = []
    burst: list[Packet] = []

    def end_burst() -> None:
        if burst:
            one, last = burst[0], burst[-1]
            push = " PSH" if last.flags & PSH else ""
            end = last.seq + last.payload
            lines.append((one.at_us, f"> {one.seq}..{end} in {len(burst)}{push} flags {last.flags:#x}"))
            burst.clear()

    for packet in packets:
        if packet.host != host or packet.way not in (way, back):
            continue
        if packet.sent and packet.payload:
            joins = burst and burst[-1].seq + burst[-1].payload == packet.seq
            if not joins or burst[-1].at_us != packet.at_us or burst[-1].flags & PSH:
                end_burst()
            burst.append(packet)
            continue
        end_burst()
        data = f" {packet.seq}..{packet.seq + packet.payload}" if packet.payload else ""
        sacks = f" sacks {packet.sacks}" if packet.sacks else ""
        arrow = ">" if packet.sent else "     <"
        text = f"{arrow}{data} ack {packet.ack} window {packet.window}{sacks} flags {packet.flags:#x}"
        lines.append((packet.at_us, text))
    end_burst()
    turn = next((i for i, (at, _) in enumerate(lines) if at >= at_us - 1e-3), len(lines))
    return [f"{at:14.3f} {text}" for at, text in lines[max(0, turn - before) : turn + after]]


def report(case: Case, before: int, after: int) -> str:
    """The case, the first packet that differs, and both views of it."""
    sides = [seen(case.text(), kind) for kind in KINDS]
    first = earliest(*sides)
    if first is None:
        return f"{case}\nall packets are equal"
    at_us, way = first
    lines = [str(case), f"at {at_us:.3f} us host{way[0]} sends another packet of {way}"]
    for kind, packets in zip(KINDS, sides, strict=True):
        lines += [kind, *view(packets, way, at_us, before, after)]
    return "\n".join(lines)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="differential.sends", description=__doc__)
    parser.add_argument("seed", type=int)
    parser.add_argument("number", type=int, nargs="+")
    parser.add_argument("--before", type=int, default=10, help="lines before the difference")
    parser.add_argument("--after", type=int, default=6, help="lines from it on")
    parser.add_argument("--others", action="store_true", help="as `python -m differential --others` draws")
    given = parser.parse_args()
    drawn = draw_other if given.others else draw
    cases = [drawn(given.seed, number) for number in given.number]
    with ProcessPoolExecutor() as pool:
        for text in pool.map(partial(report, before=given.before, after=given.after), cases):
            print(text, end="\n\n", flush=True)


if __name__ == "__main__":
    main()
