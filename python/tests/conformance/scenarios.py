"""The scenarios: each an experiment that both kinds of hosts run."""

from collections.abc import Sequence
from dataclasses import dataclass

import etalon

STAR = """
duration = "{duration}"

[fabric]
kind = "star"
hosts = {hosts}

[hosts]
rate = "10Gbps"
receive_rate = "{receive_rate}"
delay = "{delay}"
loss = {loss}

[switch]
{switch}

[tcp]
cc = "{cc}"
{tcp}

[[flows]]
from = "{senders}"
to = "host{last}"
{flow}

[measure]
capture = true
capture_side = "both"
"""


def star(
    *,
    duration: str = "200ms",
    hosts: int = 2,
    receive_rate: str = "10Gbps",
    delay: str = "20us",
    loss: float = 0.0,
    switch: str = "",
    cc: str = "newreno",
    tcp: str = "",
    flow: str = "",
) -> str:
    """One flow between two hosts, or an incast of ``hosts`` - 1 of them."""
    senders = "host0" if hosts == 2 else "all"
    return STAR.format(
        duration=duration,
        hosts=hosts,
        receive_rate=receive_rate,
        delay=delay,
        loss=loss,
        switch=switch,
        cc=cc,
        tcp=tcp,
        senders=senders,
        last=hosts - 1,
        flow=flow,
    )


WEEK = """
duration = "300ms"
warmup = "60ms"
{fabric}
[tcp]
cc = "{cc}"

[[flows]]
from = "rack0"
to = "rack1"
start = "60us"
jitter = "1us"

[measure]
pair = [0, 1]
series = "20us"
fold = 1
"""


def week(*, voq: int = 16, cc: str = "cubic") -> str:
    """Sixteen flows between two racks, through days and nights."""
    fabric = etalon.fabric(16, receive_rate="800Gbps", voq=voq) + etalon.WEEK
    return WEEK.format(fabric=fabric, cc=cc)


RING = f"""
duration = "2s"
{etalon.fabric() + etalon.LOOP}
[[workload]]
name = "ring"
kind = "ring"
big = "2MB"
small = "100kB"
per_pair = 4
start = "500us"
jitter = "100us"

[[flows]]
from = "host0"
to = "host4"
size = "1B"
start = "1900ms"
"""
"""Big flows to the next rack and small ones to the other, under a control loop; then no traffic for long."""

BLACKOUT = """
duration = "3s"

[fabric]
kind = "hybrid"
racks = 2
hosts_per_rack = 1

[hosts]
rate = "10Gbps"

[packet]
rate = "72kbps"
delay = "2s"

[circuit]
rate = "10Gbps"
delay = "20us"

[schedule]
kind = "list"
night = "0us"

[[schedule.days]]
matching = [[0, 1], [1, 0]]
day = "20ms"

[[schedule.days]]
matching = []
day = "1500ms"

[voq]
small = 1000

[tcp]
cc = "newreno"
{tcp}

[[flows]]
from = "host0"
to = "host1"

[measure]
pair = [0, 1]
capture = true
capture_side = "sender"
"""
"""Days, then a dark of 1.5 s in which no ACK arrives: the packet network takes longer."""

PACKET = """
duration = "{duration}"
warmup = "{warmup}"

[fabric]
{fabric}

[hosts]
rate = "10Gbps"
delay = "5us"

[links]
rate = "{links}"
delay = "5us"

[switch]
{switch}

[tcp]
cc = "{cc}"
{flows}
[measure]
queues = ["{bottleneck}"]
"""


@dataclass(frozen=True)
class Fabric:
    """A packet fabric, and flows that share one port of 10 Gb/s on it."""

    keys: str
    links: str
    """Rate between switches."""
    pairs: Sequence[tuple[int, int]]
    bottleneck: str
    uplinks: Sequence[str] = ()
    """The ports over which ECMP may spread the flows."""

    def scenario(self, *, duration: str, switch: str, cc: str, warmup: str = "0s", flow: str = "") -> str:
        """An experiment with a flow of each pair; in ``flow``, ``{double}`` is 1 for the first, 2 for the
        second, then 4 and so on."""
        flows = "".join(
            f'\n[[flows]]\nfrom = "host{src}"\nto = "host{dst}"\n{flow.format(double=2**i)}\n'
            for i, (src, dst) in enumerate(self.pairs)
        )
        return PACKET.format(
            duration=duration,
            warmup=warmup,
            fabric=self.keys,
            links=self.links,
            switch=switch,
            cc=cc,
            flows=flows,
            bottleneck=self.bottleneck,
        )


FABRICS = {
    "dumbbell": Fabric(
        'kind = "dumbbell"\nleft = 3\nright = 3', "10Gbps", [(0, 3), (1, 4), (2, 5)], "left->right"
    ),
    "leaf and spine": Fabric(
        'kind = "leaf_spine"\nracks = 2\nhosts_per_rack = 4\nspines = 2',
        "40Gbps",
        [(4, 0), (5, 0), (6, 0), (7, 0)],
        "host0.port",
        ["leaf1->spine0", "leaf1->spine1"],
    ),
    "fat tree": Fabric(
        'kind = "fat_tree"\nk = 4', "10Gbps", [(4, 0), (8, 0), (12, 0), (15, 0)], "host0.port"
    ),
}

FIXED = 'receive_window = "6MiB"'
"""The receiver's window is the same on both kinds of hosts from the start."""

EVERY_MS = 'throughput = "1ms"\n'

KEEP_ALIVE = """size = "{size}"

[[flows]]
from = "host1"
to = "host0"
size = "1B"
start = "150ms"
"""
"""The run continues after the flow, so that the receiver's last actions can be seen."""

RACKS = """
duration = "{duration}"

[fabric]
kind = "leaf_spine"
racks = 2
hosts_per_rack = {per_rack}
spines = 1

[hosts]
rate = "10Gbps"
delay = "10us"

[links]
rate = "10Gbps"
delay = "10us"

[[workload]]
{workload}
"""
"""A workload of messages between two racks."""


def racks(workload: str, *, duration: str = "1s", per_rack: int = 4) -> str:
    """A workload of messages between two racks."""
    return RACKS.format(duration=duration, per_rack=per_rack, workload=workload)


CHAIN = 'kind = "hdfs"\nname_node = "host1"\nfiles = 1\nfile_size = "50kB"'
"""Host 0 asks host 1, which replies; the file goes to the other rack in one piece, and there to another."""

LOSSLESS = """
duration = "100ms"

[fabric]
kind = "star"
hosts = 9

[hosts]
rate = "10Gbps"
delay = "1us"
{link}

[[flows]]
from = "all"
to = "host8"
size = "4MB"

[measure]
queues = ["host8.port"]
{measure}
"""
"""Eight hosts send to one."""


def lossless(link: str, measure: str = "") -> str:
    """Eight hosts send to one, over links of that kind."""
    return LOSSLESS.format(link=link, measure=measure)


OVERLOAD = """
duration = "200ms"

[fabric]
kind = "star"
hosts = 5

[hosts]
rate = "10Gbps"
delay = "1us"

[tcp]
receive_window = "256kB"

[pfc]

[[workload]]
kind = "paced"
to = "host4"
steps = ["0s 1.2Gbps", "10ms 6Gbps", "12ms 1.2Gbps", "40ms off"]
write = "8948B"

[measure]
throughput = "1ms"
"""
"""Four writers, for 2 ms at 24 Gb/s together."""

HOG = """
duration = "30ms"
warmup = "5ms"

[fabric]
kind = "star"
hosts = 4

[hosts]
rate = "10Gbps"
delay = "1us"

[pfc]

{qcn}

[[flows]]
from = "host1"
to = "host2"

[[workload]]
kind = "udp"
from = "host0"
to = "host3"
rate = "9Gbps"

[[workload]]
kind = "udp"
from = "host1"
to = "host3"
rate = "9Gbps"
"""
"""Datagrams overload host 3, and a flow shares only their sender's link."""

FLOODED = """
duration = "60ms"

[fabric]
kind = "star"
hosts = 4

[hosts]
rate = "10Gbps"
delay = "1us"

[switch]
queue = 10

[tcp]
rto_initial = "12ms"

[[flows]]
from = "host0"
to = "host3"
size = "9kB"
start = "1ms"

[[workload]]
kind = "background"
from = "host1"
to = "host3"
size = "6MB"
rate = "10Gbps"

[[workload]]
kind = "background"
from = "host2"
to = "host3"
size = "6MB"
rate = "10Gbps"

[measure]
capture = true
capture_side = "sender"
"""
"""A connection opens while datagrams, for 5 ms, fill its receiver's port twice over."""

SCENARIOS = {
    "handshake": star(delay="200us", tcp=FIXED, flow='size = "900kB"'),
    "ecn handshake": star(tcp="ecn = true", switch="ecn = 1000", flow='size = "9kB"'),
    "odd tail": star(tcp=FIXED, flow=KEEP_ALIVE.format(size="4017652B")),
    "in order": star(duration="60ms", tcp=FIXED),
    "overflow": star(duration="400ms", receive_rate="5Gbps", switch="queue = 30", tcp=FIXED),
    "random loss": star(duration="1s", loss=0.002, tcp=FIXED, flow='size = "200MB"') + EVERY_MS,
    "ecn": star(receive_rate="5Gbps", tcp=f"ecn = true\n{FIXED}", switch="ecn = 20"),
    "dctcp": star(hosts=3, cc="dctcp", switch="ecn = 20"),
    "incast": star(duration="1500ms", hosts=9, switch="queue = 64", flow='size = "2MB"\njitter = "1ms"'),
    "blackout": BLACKOUT.replace("{tcp}", ""),
    "shorter timeouts": BLACKOUT.replace("{tcp}", 'rto_min = "2ms"\nrto_variance = "140ms"'),
    "flooded": FLOODED,
    "week": week(),
    "deep week": week(voq=64),
    "reno week": week(cc="newreno"),
    "ring": RING,
    **{
        f"dctcp on {name}": fabric.scenario(duration="60ms", warmup="20ms", switch="ecn = 20", cc="dctcp")
        for name, fabric in FABRICS.items()
    },
    "paths": FABRICS["leaf and spine"].scenario(
        duration="1500ms", switch="queue = 1000", cc="newreno", flow='size = "{double}MB"'
    ),
    **{
        f"incast on {name}": fabric.scenario(
            duration="1500ms", switch="queue = 30", cc="newreno", flow='size = "4MB"'
        )
        for name, fabric in FABRICS.items()
    },
    "chain": racks(CHAIN),
    "queries": racks('kind = "partition_aggregate"\nqueries = 10\ncompute = "50us"\nreply = "8kB"'),
    "hdfs": racks('kind = "hdfs"\nfiles = 4\nfile_size = "3MB"\nblock = "1MB"'),
    "shuffle": racks('kind = "shuffle"\nsize = "1MB"\nparallel = 2'),
    "pfc": lossless("[pfc]"),
    "pause": lossless('[pfc]\nkind = "pause"'),
    "qcn": lossless('[pfc]\n[qcn]\nqeq = "66kB"', "rate_limiters = true"),
    "red": lossless("[pfc]\n[switch.red]\nmin = 20\nmax = 60\ndrop_beyond = false\n[tcp]\necn = true"),
    "overload": OVERLOAD,
    "hog": HOG.format(qcn=""),
    "limited hog": HOG.format(qcn="[qcn]"),
    "waiting hog": HOG.format(qcn='[adapter]\nsend_buffer = "30kB"'),
}
