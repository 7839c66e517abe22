"""Accounts of Linux hosts: they add up, little is unknown, and they are those of simulated hosts."""

import random
from pathlib import Path

import firstlight as fl
import pytest
from firstlight.cli import app
from firstlight.linux.kernels import Kernel
from firstlight.runs.account import accounts, duration, picoseconds

STAR = """
duration = "3s"
[fabric]
kind = "star"
hosts = 4
[hosts]
rate = "10Gbps"
delay = "1us"
mtu = "1500B"
"""

FLOW = """
[[flows]]
from = "host{}"
to = "host0"
size = "{}B"
start = "{}"
"""


def run(folder: Path, text: str, kind: str = "linux") -> fl.Result:
    path = folder / f"{kind}.toml"
    path.write_text(text)
    return fl.run(path, {"hosts.kind": kind, "measure.account": True, "measure.account_events": 100})


def check(result: fl.Result, most_unknown: float = 0.01) -> dict[int, dict[str, int]]:
    """The times of each flow by cause, once they add up and at most this part of them is unknown."""
    found = {}
    for flow, account in accounts(result).items():
        assert account.total_ps == round(float(result.flows["fct_us"][flow]) * 1e6), flow
        assert (account.rows["time_ps"] > 0).all()
        causes = {part.name: part.time_ps for part in account.parts()}
        assert causes.get("unknown", 0) <= most_unknown * account.total_ps, causes
        found[flow] = causes
    return found


def both(folder: Path, text: str) -> tuple[dict[int, dict[str, int]], dict[int, dict[str, int]]]:
    return check(run(folder, text, "simulated"), 0), check(run(folder, text))


CLOCK = 10_000
"""Picoseconds that a flow's few readings of its kernel's clock take, and what the clock cannot count."""


def same(one: dict[str, int], other: dict[str, int], within: int = CLOCK) -> None:
    for name in {*one, *other}:
        assert one.get(name, 0) == pytest.approx(other.get(name, 0), abs=within), (name, one, other)


def test_a_lone_packet_has_the_same_account_on_both_kinds(tmp_path: Path, kernel: Kernel) -> None:
    simulated, linux = both(tmp_path, STAR + FLOW.format(1, 1000, "0s"))
    same(simulated[0], linux[0])


def test_windows_ask_for_the_same_round_trips(tmp_path: Path, kernel: Kernel) -> None:
    text = STAR + "[tcp]\ninitial_window = 1\n" + FLOW.format(1, 20 * 1448, "0s")
    results = [run(tmp_path, text, kind) for kind in ("simulated", "linux")]
    check(results[1])
    simulated, linux = (
        {part.name: part.time_ps for part in accounts(result)[0].parts("waiting_for")} for result in results
    )
    same(simulated, linux)


def test_a_lost_tail_is_probed_on_both_kinds(tmp_path: Path, kernel: Kernel) -> None:
    flows = [FLOW.format(host, 1000, start) for host, start in ((1, "0ns"), (2, "50ns"), (3, "100ns"))]
    simulated, linux = both(tmp_path, STAR + "[switch]\nqueue = 1\n" + "".join(flows))
    assert linux[2]["tail_probe"] > 200 * 10**9
    for flow in simulated:
        same(simulated[flow], linux[flow])


def test_processors_take_their_time(tmp_path: Path, kernel: Kernel) -> None:
    """The program connects (3 us to send), the SYN is received and answered (5 + 3), the SYN-ACK is received,
    acknowledged, and the data are sent (5 + 3 + 3). They arrive 4.6 us after this ACK, which the receiver
    takes 5 us for, and then 5 us for them."""
    costs = '[linux.cpu]\ncores = 1\npacket = "5us"\nsend = "3us"\n'
    plain, causes = (
        check(run(tmp_path, STAR + table + FLOW.format(1, 1000, "0s")))[0] for table in ("", costs)
    )
    ack, data = 2 * 52 * 800, 2 * 1052 * 800
    waits = 5_000_000 - (3_000_000 + data - ack)
    same({**plain, "processor": 27_000_000 + waits, "interface_queue": 0}, causes)


@pytest.mark.parametrize("moderation", ["0s", "20us"])
def test_processors_are_no_pacers(tmp_path: Path, kernel: Kernel, moderation: str) -> None:
    costs = f'[linux.cpu]\nprofile = "xeon-e5-2430"\nmoderation = "{moderation}"\n'
    flows = "".join(FLOW.format(host, 100_000, "0s") for host in (1, 2, 3))
    found = check(run(tmp_path, STAR + "[switch]\nqueue = 16\n" + costs + flows))
    assert all(causes["processor"] > 10_000_000 and causes.get("pacing", 0) == 0 for causes in found.values())


def test_timeouts_and_queues_of_an_incast(
    tmp_path: Path, kernel: Kernel, capsys: pytest.CaptureFixture[str]
) -> None:
    flows = "".join(FLOW.format(host, 200_000, "0s") for host in (1, 2, 3))
    result = run(tmp_path, STAR + "[switch]\nqueue = 16\n" + flows)
    causes = check(result)
    timeouts = {int(flow) for flow in result.flows.index[result.flows["timeouts"] > 0]}
    assert timeouts and timeouts == {flow for flow, own in causes.items() if own.get("rto", 0) > 200 * 10**9}
    # The kernel counts in ticks of 4 ms.
    busy = result.table("account_tcp_info").set_index("flow")["busy_us"]
    for flow in causes:
        assert busy[flow] == pytest.approx(float(result.flows["fct_us"][flow]), abs=4001)
    result.save(tmp_path / "stored")
    app(["explain", str(tmp_path / "stored"), "--flow", "1"], standalone_mode=False)
    told = f"The sender's kernel counts, in ticks: busy {duration(picoseconds(busy[1]))}, of this limited by"
    assert told in capsys.readouterr().out


FABRICS = (
    'kind = "star"\nhosts = 6\n',
    'kind = "leaf_spine"\nracks = 3\nhosts_per_rack = 2\nspines = 2\n[links]\nrate = "5Gbps"\n',
    'kind = "dumbbell"\nleft = 3\nright = 3\n[links]\nrate = "5Gbps"\n',
    'kind = "fat_tree"\nk = 4\n[links]\nrate = "5Gbps"\n',
    'kind = "three_tier"\nracks = 4\nhosts_per_rack = 2\naggregations = 4\ncores = 2\nspray = true\n',
    'kind = "torus"\nrows = 2\ncolumns = 3\nhosts_per_rack = 1\n[links]\nrate = "5Gbps"\n',
    'kind = "graph"\nfile = "uneven.txt"\n',
    'kind = "hybrid"\nracks = 3\nhosts_per_rack = 2\n[packet]\nrate = "5Gbps"\ndelay = "5us"\n'
    '[circuit]\nrate = "40Gbps"\ndelay = "20us"\n'
    '[schedule]\nkind = "strobe"\nday = "90us"\nnight = "15us"\n',
)
SWITCHES = (
    "[switch]\nqueue = 8\n",
    "[switch]\nqueue = 100\necn = 10\n",
    '[pfc]\nxoff = "30kB"\n',
    '[switch]\nqueue = "60kB"\n[qcn]\nqeq = "20kB"\n',
)
VOQS = ("[voq]\nsmall = 8\n", '[voq]\nsmall = 8\nlarge = 60\nadvance = "30us"\n', '[pfc]\nxoff = "30kB"\n')
HOSTS = (
    "",
    'send_delay = "3us"\nreceive_delay = "2us"\n',
    "loss = 0.02\n",
    'jitter = { kind = "exponential", mean = "2us" }\n',
)
UNEVEN = """
switch s0
switch s1
host a s0 10Gbps 500ns
host b s0 10Gbps 3us
host c s0 40Gbps 700ns
host d s1 1Gbps 1us
host e s1 25Gbps 1us
host f s1 10Gbps 20us
link s0 s1 3Gbps 11us
"""
ADAPTERS = (
    "",
    "",
    '[linux.cpu]\nprofile = "xeon-e5-2430"\n',
    '[adapter]\nsend_buffer = "40kB"\n',
    '[adapter]\ndrain = "3Gbps"\nreceive_buffer = "200kB"\n',
)
TCP = (
    "",
    'cc = "newreno"\n',
    'cc = "dctcp"\n',
    'cc = "bbr"\n',
    "initial_window = 1\n",
    'receive_window = "40kB"\n',
)


def drawn(seed: int) -> str:
    """A small experiment of random fabric, queues, hosts, endpoints and flows."""
    draw = random.Random(seed)
    fabric = FABRICS[seed % len(FABRICS)]
    queues = draw.choice(VOQS if "hybrid" in fabric else SWITCHES)
    mtu, delay = draw.choice(["1500B", "9000B"]), draw.choice(["1us", "40us"])
    ends = [draw.sample(range(6), 2) for _ in range(draw.randint(2, 7))]
    flows = "".join(
        f'[[flows]]\nfrom = "host{src}"\nto = "host{dst}"\n'
        f'size = "{draw.randint(1, 200_000)}B"\nstart = "{draw.randint(0, 200)}us"\n'
        for src, dst in ends
    )
    links = "" if "graph" in fabric else f'rate = "10Gbps"\ndelay = "{delay}"\n'
    readers = draw.choice(["", "", 'read_rate = "1Gbps"\n'])
    flows = flows.replace("start = ", f"{readers}start = ")
    hosts = f'[hosts]\n{links}mtu = "{mtu}"\n{draw.choice(HOSTS)}'
    tables = f"{queues}{draw.choice(ADAPTERS)}[tcp]\n{draw.choice(TCP)}"
    return f'duration = "3s"\nseed = {seed}\n[fabric]\n{fabric}{hosts}{tables}{flows}'


@pytest.mark.parametrize("seed", range(32))
def test_accounts_of_random_experiments_add_up(tmp_path: Path, kernel: Kernel, seed: int) -> None:
    (tmp_path / "uneven.txt").write_text(UNEVEN)
    result = run(tmp_path, drawn(seed))
    found = check(result)
    assert found.keys() == set(result.flows.index[result.flows["fct_us"].notna()])


def test_a_slow_reader_closes_the_window_on_both_kinds(tmp_path: Path, kernel: Kernel) -> None:
    """The sender waits 80 % of the time until the program reads."""
    text = STAR + FLOW.format(1, 3_000_000, "0s") + 'read_rate = "1Gbps"\n'
    simulated, linux = both(tmp_path, text)
    assert simulated[0]["reader"] > 0.7 * sum(simulated[0].values())
    same(simulated[0], linux[0], within=2_000_000)
