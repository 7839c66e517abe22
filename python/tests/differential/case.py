"""An invented experiment: drawn from a seed, written as a file, and made smaller."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import exp, log
from random import Random

CONTROLLERS = ("newreno", "cubic", "dctcp")
OTHERS = (
    "newreno",
    "cubic",
    "bic",
    "highspeed",
    "htcp",
    "hybla",
    "illinois",
    "scalable",
    "vegas",
    "veno",
    "westwood",
    "yeah",
)
"""Controllers that draw no random numbers and set no rate."""
HEADERS = 52
"""Bytes of IP and TCP headers in a packet with timestamps."""


@dataclass(frozen=True)
class Flow:
    """One flow to the last host."""

    size: int
    """Bytes."""
    start_us: int


@dataclass(frozen=True)
class Writer:
    """An application that writes instead of the first flow: ``write`` bytes at a time, with pauses."""

    write: int
    """Bytes."""
    rate_mbps: int
    pauses_us: tuple[int, ...]
    """It writes and pauses in turn, for so long each."""


@dataclass(frozen=True)
class Reader:
    """The program that receives each flow: it reads, and works on what it has read."""

    rate_mbps: int
    size: int
    """Bytes that it reads at most with one call."""


@dataclass(frozen=True)
class Case:
    """One or two flows around a switch, without chaos: what is lost follows from the seed."""

    rate_mbps: int
    rtt_us: int
    mtu: int
    cc: str
    flows: tuple[Flow, ...]
    bottleneck: int = 1
    """The link to the receiver has the rate divided by this."""
    queue: int | None = None
    """Packets at each port of the switch."""
    threshold: int | None = None
    """Packets above which the switch marks."""
    ecn: bool = False
    sack: bool = True
    rto_min_ms: int = 200
    drain: int = 0
    """The receiver fetches packets at the rate divided by this; 0: at once."""
    loss_percent: float = 0.0
    """Packets that are lost: the same ones on both kinds of hosts, as long as these send the same packets."""
    seed: int = 1
    """Which packets are lost."""
    writer: Writer | None = None
    reader: Reader | None = None
    """Of all flows but the writer's."""
    jitter_ns: int = 0
    """The mean of the random part of the stacks' delays; none is drawn."""

    def text(self) -> str:
        """The experiment."""
        hosts = len(self.flows) + 1
        loss = f"loss = {self.loss_percent / 100:.6f}\n" if self.loss_percent else ""
        limits = {"queue": self.queue, "ecn": self.threshold}
        switch = "".join(f"{key} = {value}\n" for key, value in limits.items() if value)
        if self.jitter_ns:
            loss += f'jitter = {{ kind = "exponential", mean = "{self.jitter_ns}ns" }}\n'
        adapter = f'[adapter]\ndrain = "{self.rate_mbps // self.drain}Mbps"\n' if self.drain else ""
        reads = ""
        if self.reader:
            reads = f'read_rate = "{self.reader.rate_mbps}Mbps"\nread_size = "{self.reader.size}B"\n'
        sources = [
            f'[[flows]]\nfrom = "host{i}"\nto = "host{hosts - 1}"\nsize = "{flow.size}B"\n'
            f'start = "{flow.start_us}us"\n{reads}'
            for i, flow in enumerate(self.flows)
        ]
        # The default of simulated hosts is RFC 3168's, which has none.
        syn = 'ect_syn = "both"\n' if self.cc == "dctcp" else ""
        sack = "" if self.sack else "sack = false\n"
        duration = 60_000_000
        if self.writer:
            steps, at = [], 0
            for index, pause in enumerate(self.writer.pauses_us):
                steps.append(f'"{at}us ' + ("off" if index % 2 else f"{self.writer.rate_mbps}Mbps") + '"')
                at += pause
            steps.append(f'"{at}us off"')
            duration = at + 1_000_000
            sources[0] = (
                f'[[workload]]\nkind = "paced"\nfrom = "host0"\nto = "host{hosts - 1}"\n'
                f'steps = [{", ".join(steps)}]\nwrite = "{self.writer.write}B"\n'
            )
        return (
            f'name = "differential"\nseed = {self.seed}\nduration = "{duration}us"\n'
            f'[fabric]\nkind = "star"\nhosts = {hosts}\n'
            f'[hosts]\nrate = "{self.rate_mbps}Mbps"\n'
            f'receive_rate = "{self.rate_mbps // self.bottleneck}Mbps"\n'
            f'delay = "{self.rtt_us * 250}ns"\nmtu = "{self.mtu}B"\n{loss}'
            f"[switch]\n{switch}{adapter}"
            f'[tcp]\ncc = "{self.cc}"\necn = {str(self.ecn).lower()}\nrto_min = "{self.rto_min_ms}ms"\n'
            f"{syn}{sack}"
            f"{''.join(sources)}"
            f'[measure]\ncapture = true\ncapture_side = "both"\n'
        )

    def smaller(self) -> Iterator["Case"]:
        """Cases with less in them, the least first."""
        if len(self.flows) > 1:
            yield replace(self, flows=self.flows[:1])
            yield replace(self, flows=self.flows[1:], writer=None)
        if self.writer:
            yield replace(self, writer=None)
            if len(self.writer.pauses_us) > 1:
                yield replace(
                    self, writer=replace(self.writer, pauses_us=self.writer.pauses_us[:-2] or (100,))
                )
        plainer = (
            replace(self, loss_percent=0.0),
            replace(self, loss_percent=self.loss_percent / 2) if self.loss_percent > 0.1 else self,
            replace(self, drain=0),
            replace(self, reader=None),
            replace(self, ecn=False),
            replace(self, sack=True),
            replace(self, threshold=None),
            replace(self, bottleneck=1),
            replace(self, queue=None),
            replace(self, rto_min_ms=200),
        )
        yield from (case for case in plainer if case != self)
        for part in (8, 2):
            flows = tuple(Flow(max(flow.size // part, 1), 0) for flow in self.flows)
            if flows != self.flows:
                yield replace(self, flows=flows)
        if (self.rate_mbps, self.rtt_us) != (10_000, 100):
            yield replace(self, rate_mbps=10_000, rtt_us=100)


def draw(seed: int, number: int) -> Case:
    """Case ``number`` of ``seed``."""
    random = Random(f"{seed} {number}")

    def among(least: float, most: float) -> int:
        """A whole number whose logarithm is uniform."""
        return round(exp(random.uniform(log(least), log(most))))

    rate, rtt, mtu = among(1_000, 40_000), among(20, 20_000), random.choice([1500, 1500, 9000])
    payload = mtu - HEADERS

    def flow(start: int) -> Flow:
        size = among(100, 10_000) * payload + random.choice([0, 0, 1, payload // 3])
        return Flow(min(size, 20_000_000), start)

    flows = [flow(0)]
    if random.random() < 0.3:
        flows.append(flow(random.choice([0, among(10, 10_000)])))
    cc = random.choice(CONTROLLERS)
    ecn = cc == "dctcp" or random.random() < 0.3
    # Each size of flow loses a few packets.
    packets = 2 * sum(flow.size for flow in flows) / payload
    loss = min(100 * among(1, 12) / packets, 5.0) if random.random() < 0.5 else 0.0
    writer = None
    if random.random() < 0.15:
        pauses = tuple(among(50, 300_000) for _ in range(2 * random.randint(1, 3)))
        written = sum(pauses[::2])
        writer = Writer(among(100, 100_000), max(1, min(rate, 80_000_000 // max(written, 1))), pauses)
    bottleneck = random.choice([1, 1, 2, 4])
    queue = among(20, 1000) if random.random() < 0.5 else None
    threshold = among(5, 100) if ecn else None
    rto_min = random.choice([200, 200, 200, 10, 1])
    drain = random.choice([2, 4]) if random.random() < 0.1 else 0
    reader = Reader(among(rate // 20, rate), among(100, 1_000_000)) if random.random() < 0.15 else None
    return Case(
        rate_mbps=rate,
        rtt_us=rtt,
        mtu=mtu,
        cc=cc,
        flows=tuple(flows),
        bottleneck=bottleneck,
        queue=queue,
        threshold=threshold,
        ecn=ecn,
        rto_min_ms=rto_min,
        drain=drain,
        loss_percent=round(loss, 4),
        seed=number + 1,
        writer=writer,
        reader=reader,
    )


def draw_other(seed: int, number: int) -> Case:
    """Case ``number`` of ``seed`` with one of :data:`OTHERS`, three in ten without SACK."""
    random = Random(f"v{seed} {number}")
    cc = random.choice(OTHERS)
    return replace(draw(seed, number), cc=cc, sack=random.random() >= 0.3)
