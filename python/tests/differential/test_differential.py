"""The tool that invents experiments, and a few of them with packets that are equal on both kinds of hosts."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import firstlight
import pytest
from conformance import trace
from firstlight.linux.kernels import Kernel

from . import many, packets, sends
from .__main__ import KINDS, SHRINKS, Verdict, judge, kinds, shrink, spread, summary
from .case import OTHERS, Case, Flow, Reader, draw, draw_other
from .packets import Connection, Row

PAIR: Connection = (0, 10_000, 1, 10_000)
SMALL = Case(rate_mbps=10_000, rtt_us=100, mtu=1500, cc="newreno", flows=(Flow(3000, 0),))


def row(at_us: float, **fields: int) -> Row:
    """A data packet."""
    known = {"flags": 0x10, "seq": 1, "ack": 1, "payload": 1448, "window": 502, "ecn": 0} | fields
    return Row(at_us=at_us, sent=True, sacks=(), **known)


def kind(ours: list[Row], theirs: list[Row], windows: bool = True) -> str | None:
    found = packets.difference({PAIR: ours}, {PAIR: theirs}, windows=windows)
    return found.kind if found else None


def test_the_first_packet_that_differs_is_found() -> None:
    start = [row(0, payload=0), row(10, payload=0), row(20)]
    data = [*start, row(30, seq=1449)]
    assert kind(data, data) is None
    assert kind(data, [*start, row(30, seq=2897)]) == "seq of data before any loss"
    assert kind(data, start) == "one side ends of data before any loss"
    other = [row(0, payload=0), row(10, payload=0, window=400), row(20), row(30, seq=1449, payload=100)]
    assert kind(data, other) == "window of data handshake"
    assert kind(data, other, windows=False) == "payload of data before any loss"
    again = row(40, seq=1449)
    assert kind([*data, again, again], [*data, again, row(41, seq=1)]) == "seq of data after a loss"


def test_packets_that_arrive_at_both_ends_at_once_have_no_order() -> None:
    data, ack = row(30, seq=1449), replace(row(30.5, payload=0), sent=False)
    start = [row(0, payload=0), row(10, payload=0), row(20)]
    assert kind([*start, data, ack], [*start, ack, replace(data, at_us=30.6)]) is None
    assert (
        kind([*start, data, ack], [*start, ack, replace(data, at_us=31.1)]) == "end of data before any loss"
    )
    assert kind([*start, data, ack], [*start, ack, replace(data, seq=1)]) == "seq of data before any loss"
    assert kind([*start, data, row(30.2)], [*start, row(30.2), data]) == "seq of data before any loss"


def test_times_may_differ_by_a_microsecond_or_where_a_timer_sends_by_a_tick() -> None:
    assert kind([row(0), row(10)], [row(0), row(10.9)]) is None
    assert kind([row(0), row(10)], [row(0), row(11.1)]) == "time of data handshake"
    assert kind([row(0), row(200_000), row(200_010)], [row(0), row(203_900), row(203_910)]) is None
    assert kind([row(0), row(200_000)], [row(0), row(204_100)]) == "time of data handshake"


@pytest.mark.parametrize("number", range(60))
def test_a_drawn_case_is_an_experiment_and_so_is_all_that_is_smaller(number: int, tmp_path: Path) -> None:
    case = draw(7, number)
    assert case == draw(7, number) != draw(8, number)
    file = tmp_path / "case.toml"
    for made in (case, *case.smaller()):
        assert made != case or made is case
        file.write_text(made.text(), encoding="utf-8")
        firstlight.inspect(file)


@pytest.mark.parametrize("number", range(30))
def test_a_drawn_case_of_many_flows_is_an_experiment(number: int, tmp_path: Path) -> None:
    name, text = many.draw(7, number)
    assert (name, text) == many.draw(7, number) != many.draw(8, number)
    file = tmp_path / "case.toml"
    file.write_text(text, encoding="utf-8")
    firstlight.inspect(file)


def test_shrinking_keeps_the_kind_of_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever has a packet lost differs; a case without losses does not."""
    tried = []

    def by_losses(case: Case, keep: Path | None = None) -> Verdict:
        tried.append(case)
        lost = [row(0), row(10), row(20), row(30, seq=1449)]
        first = packets.difference({PAIR: lost}, {PAIR: lost[:3]}) if case.loss_percent else None
        return Verdict(case, first, first)

    monkeypatch.setattr("differential.__main__.judge", by_losses)
    large = replace(
        SMALL, loss_percent=2.0, flows=(Flow(900_000, 0), Flow(900_000, 5)), bottleneck=2, drain=2
    )
    small = shrink(by_losses(large))
    assert 0 < small.case.loss_percent <= 0.1 and len(small.case.flows) == 1
    assert (small.case.bottleneck, small.case.drain) == (1, 0)
    assert len(tried) <= SHRINKS + 2
    verdicts = [small, small, Verdict(SMALL, None, None), Verdict(SMALL, None, None, "no kernel")]
    assert list(kinds(verdicts)) == ["one side ends of data after a loss"]
    assert summary(verdicts) == "1 of 3 equal, 1 but for offered windows"


def test_completion_times_are_told_of_the_cases_that_have_them() -> None:
    verdicts = [Verdict(SMALL, None, None, apart=apart) for apart in (0.0, None, 1.0, 30.0)]
    assert spread(verdicts) == (
        "completion times of 3 diverge by 1.00 % in the median, 27.1 % at the 95th percentile, 30.0 % at most"
    )
    assert spread([Verdict(SMALL, None, None, "no kernel")]) == "no flow completed on both kinds of hosts"


def test_the_first_packet_that_a_host_sends_otherwise_is_shown_as_its_sender_saw_it() -> None:
    way = PAIR
    ack = sends.Packet(100.0, 0, (*way[2:], *way[:2]), False, 1, 0, 1, 502, 0x10, ())
    data = [sends.Packet(100.0, 0, way, True, seq, 1448, 1, 502, 0x10, ()) for seq in (1, 1449)]
    last = replace(data[0], at_us=200.0, seq=2897, flags=0x18)
    ours, theirs = [ack, *data, last], [ack, *data, replace(last, payload=100)]
    assert sends.earliest(ours, [replace(packet, at_us=packet.at_us + 0.4) for packet in ours]) is None
    assert sends.earliest(ours, theirs) == (200.0, way) == sends.earliest(ours, theirs[:-1])
    assert sends.view(theirs, way, 200.0, 5, 5) == [
        "       100.000      < ack 1 window 502 flags 0x10",
        "       100.000 > 1..2897 in 2 flags 0x10",
        "       200.000 > 2897..2997 in 1 PSH flags 0x18",
    ]
    assert sends.view(theirs, way, 200.0, 1, 1)[0].endswith("in 2 flags 0x10")


def test_captures_distinguish_hosts_of_different_racks(tmp_path: Path) -> None:
    """Connection i joins host i of rack 0 with host i of rack 1, whose addresses end in the same byte."""
    file = Path(__file__).parents[3] / "experiments/etalon/three-racks/experiment.toml"
    given = {"duration": "2ms", "warmup": "0s", "measure.capture_side": "both"}
    capture = firstlight.run(file, given, out=tmp_path / "r", capture=True).capture
    assert isinstance(capture, Path)
    found = sends.read(capture)
    assert {packet.way[::2] for packet in found if packet.payload} == {(i, 16 + i) for i in range(16)}
    assert all(packet.sent == (packet.host == packet.way[0]) for packet in found)
    assert {connection[::2] for connection in packets.read(capture)} == {(i, 16 + i) for i in range(16)}


def test_other_draws_have_each_controller_with_and_without_sack() -> None:
    cases = [draw_other(301, number) for number in range(200)]
    assert {case.cc for case in cases} == set(OTHERS)
    assert 40 < sum(not case.sack for case in cases) < 80
    assert all(("sack = false" in case.text()) != case.sack for case in cases)


def drawn(seed: int, number: int) -> Case:
    """A drawn case without its reader: what it shows is not of readers."""
    return replace(draw(seed, number), reader=None)


EQUAL = {
    "one burst": SMALL,
    "jumbo packets": replace(SMALL, mtu=9000, flows=(Flow(50_000, 0),)),
    "a slow link": replace(SMALL, rate_mbps=1000, rtt_us=1000, flows=(Flow(14_480, 0),)),
    "slow start": replace(SMALL, rtt_us=5000, flows=(Flow(40_000, 0),)),
    "DCTCP": replace(SMALL, cc="dctcp", ecn=True, threshold=20, flows=(Flow(40_000, 0),)),
    "a long flow": replace(SMALL, flows=(Flow(300_000, 0),)),
    "a long flow of jumbo packets": replace(SMALL, mtu=9000, flows=(Flow(3_000_000, 0),)),
    "CUBIC, two flows": replace(SMALL, cc="cubic", flows=(Flow(20_000, 0), Flow(20_000, 300))),
    "marks on CUBIC": replace(
        SMALL,
        cc="cubic",
        rtt_us=40,
        bottleneck=2,
        ecn=True,
        threshold=20,
        flows=(Flow(6_000_000, 0),),
    ),
    "hosts with noise": replace(SMALL, cc="cubic", flows=(Flow(3_000_000, 0),), jitter_ns=300),
    "an interface that holds two bursts": drawn(7, 45),
    "a program that writes in pieces": drawn(7, 120),
    "a copy waits for the interface": drawn(7, 21),
    "a window after marks": drawn(7, 8),
    "writes in pieces of 16 pages": drawn(7, 162),
    "more that follows what was pushed": drawn(7, 28),
    "blocks of SACK in their order": drawn(7, 93),
    "bursts at the rate of the last ACK": drawn(7, 81),
    "a round trip by timestamps": drawn(7, 36),
    "packets that join when a gap is filled": drawn(7, 74),
    "timers that expire when they are due": drawn(7, 26),
    "a window that little memory rounds down": drawn(7, 117),
    "a window that grows by the segments that arrive": drawn(7, 58),
    "the ACK before a mark offers what is left after the packet": drawn(7, 137),
    "a held ACK due with a packet": drawn(7, 189),
    "one slow start that HyStart ends": drawn(7, 146),
    "quick ACKs for a retransmission without ECT": drawn(11, 27),
    "a write while others wait for the interface": drawn(11, 133),
    "CUBIC after idle times": drawn(11, 169),
    "a recovery that ends with the reduction before it": drawn(11, 127),
    "bursts that are divided before they join": drawn(11, 129),
    "the timer of an ACK that has gone out": drawn(7, 53),
    "timeouts in whole ticks": drawn(7, 30),
    "a window before the first full packet": drawn(7, 83),
    "a copy that divides a burst": drawn(7, 3),
    "a beta of whole 1024ths": drawn(7, 29),
    "a train of ACKs": drawn(7, 59),
    "what is reported is kept together": drawn(7, 142),
    "a timer that counts nanoseconds": drawn(11, 123),
    "a buffer that grows between two bursts": drawn(7, 224),
    "copies in bursts like new data": drawn(11, 135),
    "an ACK in the interface": drawn(23, 1),
    "a copy whose timestamp is not echoed": drawn(23, 30),
    "segments in the order of their sending": drawn(23, 41),
    "idle times in whole ticks": drawn(31, 196),
    "a copy does not say that the window limits": drawn(7, 200),
    "CUBIC's coarse root": drawn(7, 432),
    "a silence in whole ticks": drawn(7, 52),
    "a window left unused": drawn(61, 35),
    "a mark on the first packet": drawn(83, 2),
    **{
        f"lost packets {seed}": replace(
            SMALL, cc="cubic", rtt_us=1000, flows=(Flow(20_000, 0),), loss_percent=5.0, seed=seed
        )
        for seed in (1, 2, 3, 4, 6, 7)
    },
    # Readers that are slower than the path: windows that close, queues in the receive buffer, gaps in them.
    "slow reader": replace(SMALL, cc="cubic", flows=(Flow(5_000_000, 0),), reader=Reader(1000, 65_536)),
    "small calls": replace(
        SMALL, rate_mbps=2757, rtt_us=5673, flows=(Flow(1_663_752, 0),), reader=Reader(591, 3857)
    ),
    "slow reader, losses": replace(
        SMALL,
        cc="dctcp",
        rate_mbps=2404,
        rtt_us=748,
        ecn=True,
        threshold=94,
        flows=(Flow(1_000_000, 0),),
        loss_percent=0.1846,
        seed=31,
        reader=Reader(191, 4692),
    ),
    "the last update of a slow reader": draw(7, 164),
    **{
        f"lost handshakes {cc} {seed}": replace(
            SMALL, cc=cc, ecn=True, rtt_us=200, flows=(Flow(30_000, 1000),), loss_percent=12.0, seed=seed
        )
        for cc in ("cubic", "dctcp")
        for seed in (29, 43, 55, 75, 80, 123)
    },
}


@pytest.mark.parametrize("name", EQUAL)
def test_packets_are_equal(name: str, kernel: Kernel) -> None:
    """Order, contents and times, from the first SYN to the last acknowledgement."""
    verdict = judge(EQUAL[name])
    assert verdict.failure is None
    assert verdict.first is None, verdict.first
    assert verdict.apart is not None and verdict.apart < 0.1


STAR = """\
name = "sent"
seed = 3
duration = "{duration}"

[fabric]
kind = "star"
hosts = {hosts}

[hosts]
rate = "{rate}"
delay = "{delay}"
mtu = "{mtu}"

[tcp]
cc = "{cc}"
{more}
"""
INCAST = """
[switch]
queue = "200kB"

[[workload]]
kind = "incast"
to = "host0"
senders = 16
size = "200kB"
period = "40ms"
"""


def star(cc: str, duration: str, path: str, mtu: str, more: str, *, hosts: int = 3) -> str:
    """An experiment whose links have the rate and the delay of ``path``."""
    rate, delay = path.split()
    given = {"cc": cc, "duration": duration, "rate": rate, "delay": delay, "mtu": mtu, "more": more}
    return STAR.format(hosts=hosts, **given)


def flow(start: str, more: str = "", *, source: int = 1) -> str:
    return f'\n[[flows]]\nfrom = "host{source}"\nto = "host0"\nstart = "{start}"\n{more}'


PACKET_BY_PACKET = star(
    "dctcp",
    "40ms",
    "1Gbps 30us",
    "1500B",
    "bursts = false\n{}\n[switch]\necn = 20\n"
    + flow("0us", 'size = "3MB"')
    + flow("300us", 'size = "200kB"', source=2),
)
WITHOUT_SACK = "sack = false\n\n[switch]\nqueue = 30\n"
SENT = {
    "the end of a flow's last write": star(
        "newreno", "1ms", "10Gbps 2us", "9000B", flow("0us", 'size = "30kB"')
    ),
    "without SACK, duplicates after a timeout": star(
        "newreno", "260ms", "1Gbps 300us", "9000B", WITHOUT_SACK + flow("0us") + flow("13ms", source=2)
    ),
    "a window that Vegas grows unfilled": star(
        "vegas", "34ms", "3708Mbps 1254us", "9000B", flow("0us", 'size = "10MB"')
    ),
    "the packets that NV counts in flight": star("nv", "30ms", "1Gbps 200us", "9000B", flow("0us")),
    "BBR before its first random phase": star("bbr", "21ms", "1Gbps 200us", "9000B", flow("0us")),
    "BBR in the first round trip of a recovery": star(
        "bbr", "700us", "10Gbps 2us", "1500B", INCAST, hosts=17
    ),
    "packet by packet": PACKET_BY_PACKET.format(""),
    "packet by packet, without small queues": PACKET_BY_PACKET.format("small_queues = false\n"),
    "bursts without small queues": PACKET_BY_PACKET.replace("bursts = false", "small_queues = false").format(
        ""
    ),
}


@pytest.mark.parametrize("name", SENT)
def test_hosts_send_the_same(name: str, kernel: Kernel) -> None:
    """Each packet at both ends, also where what a host sends later arrives at the same time."""
    simulated, linux = (sends.seen(SENT[name], kind) for kind in KINDS)
    assert len(linux) > 10
    assert sends.earliest(simulated, linux) is None


@pytest.mark.parametrize(("window", "mtu"), [("9kB", 9000), ("64kB", 1500), ("256kB", 9000)])
def test_packets_are_equal_with_fixed_receive_buffers(
    window: str, mtu: int, kernel: Kernel, tmp_path: Path
) -> None:
    """9 kB have room for no two segments: these become smaller."""
    text = replace(SMALL, mtu=mtu, flows=(Flow(1_000_000, 0),)).text()
    file = tmp_path / "case.toml"
    file.write_text(text.replace("[tcp]\n", f'[tcp]\nreceive_window = "{window}"\n'), encoding="utf-8")
    captures = []
    for kind in KINDS:
        capture = firstlight.run(file, {"hosts.kind": kind}, out=tmp_path / kind).capture
        assert isinstance(capture, Path)
        captures.append(packets.read(capture))
    assert packets.difference(*captures) is None


# BBR draws its first phase at random after that.
UNTIL = {"bbr": 0.0012}
VARIANTS = [
    "bbr",
    "bic",
    "cubic",
    "dctcp",
    "highspeed",
    "htcp",
    "hybla",
    "illinois",
    "newreno",
    "nv",
    "scalable",
    "vegas",
    "veno",
    "westwood",
    "yeah",
]


def shows_the_same(file: str, given: Mapping[str, object], until: float, tmp_path: Path) -> int:
    """Checks what each host sends and gets before ``until``, in seconds, on both kinds. Returns how much."""
    sides = []
    for on in KINDS:
        keys = {**given, "measure.capture_side": "both", "hosts.kind": on}
        path = Path(__file__).parents[3] / "experiments/etalon" / file / "experiment.toml"
        capture = firstlight.run(path, keys, out=tmp_path / on, capture=True).capture
        assert isinstance(capture, Path)
        rows = [(at, host, ip) for at, host, ip in trace.packets(capture) if at < until]
        seen = [(host, ip.len, ip.data.flags, ip.data.win) for _, host, ip in rows]
        sides.append(sorted(seen, key=lambda packet: packet[0]))
    assert sides[0] == sides[1]
    return len(sides[0])


@pytest.mark.parametrize("cc", VARIANTS)
def test_a_path_that_reorders_shows_the_same_packets(kernel: Kernel, tmp_path: Path, cc: str) -> None:
    """16 connections over an optical circuit and a packet network: what each host sends and gets in 39 ms."""
    until = UNTIL.get(cc, 0.039)
    given = {"tcp.cc": cc, "duration": "40ms", "warmup": "10ms"}
    assert shows_the_same("three-racks", given, until, tmp_path) > 700_000 * until


@pytest.mark.parametrize(
    "cc", ["bic", "cubic", "dctcp", "illinois", "newreno", "vegas", "veno", "westwood", "yeah"]
)
def test_timeouts_and_what_follows_show_the_same_packets(kernel: Kernel, tmp_path: Path, cc: str) -> None:
    """16 connections with a few packets each, which wait for timeouts; VOQs are resized. 88.9 ms of them."""
    dynamic = {"time_scale": 20, "voq.large": 50, "voq.ecn_large": 31, "voq.advance": "1200us"}
    given = {"tcp.cc": cc, "duration": "90ms", "warmup": "10ms", **dynamic}
    assert shows_the_same("fig04-variants-static", given, 0.0889, tmp_path) > 50_000


PAUSES = """
duration = "220ms"
[fabric]
kind = "star"
hosts = 2
[hosts]
rate = "5Gbps"
delay = "100us"
mtu = "1500B"
[tcp]
rto_min = "5ms"
[[workload]]
kind = "paced"
from = "host0"
to = "host1"
steps = ["0us 800Mbps", "60ms off", "69ms 800Mbps", "120ms off", "135ms 1Gbps", "180ms 100Mbps"]
write = "3000B"
"""
"""A window is never filled after 5 ms, and timeouts are 12 ms: one pause is shorter, one longer."""


def windows(folder: Path, cc: str) -> list[dict[int, int]]:
    """The congestion window at the end of each 100 us, on simulated and on Linux hosts."""
    file = folder / "pauses.toml"
    file.write_text(PAUSES)
    simulated = firstlight.run(file, {"tcp.cc": cc, "measure.throughput": "100us"}).table("throughput")
    on_linux = {"tcp.cc": cc, "hosts.kind": "linux", "measure.tcp_info": "100us"}
    linux = firstlight.run(file, on_linux).table("tcp_info")
    ends = [simulated["time_us"] + 100, linux["time_us"]]
    return [
        {round(at): int(cwnd) for at, cwnd in zip(times, table["cwnd_packets"], strict=True)}
        for times, table in zip(ends, (simulated, linux), strict=True)
    ]


@pytest.mark.parametrize("cc", ["newreno", "cubic", "bbr"])
def test_windows_that_a_program_does_not_fill(kernel: Kernel, tmp_path: Path, cc: str) -> None:
    """Pauses shrink a window, but not one that BBR sets. BBR's own level differs by 2 %."""
    simulated, linux = windows(tmp_path, cc)
    common = sorted(simulated.keys() & linux.keys())
    assert len(common) > 1000
    if cc == "bbr":
        for seen in (simulated, linux):
            assert len({seen[at] for at in common if at > 10_000}) == 1
        assert simulated[common[-1]] == pytest.approx(linux[common[-1]], rel=0.02)
    else:
        assert [simulated[at] for at in common] == [linux[at] for at in common]
        assert min(linux[at] for at in common if at > 10_000) < linux[10_000], "a pause has shrunk it"
