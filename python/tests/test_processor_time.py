"""``[linux.cpu]``: what system calls, wake-ups, copies and packets take on the processors of Linux hosts."""

import json
import os
import re
from pathlib import Path

import firstlight as fl
import pytest
from conftest import Command
from firstlight import core
from firstlight.linux import processor

needs_kernel = pytest.mark.usefixtures("kernel")

STAR = """
duration = "{duration}"

[fabric]
kind = "star"
hosts = 3

[hosts]
kind = "linux"
rate = "10Gbps"
delay = "5us"
mtu = "1500B"

[linux.cpu]
{costs}
"""
PROGRAM = """
[[program]]
name = "{name}"
on = "{on}"
run = '''
exec python3 -S -c "
{code}"'''
"""


def star(folder: Path, costs: str, *more: str, duration: str = "200ms") -> Path:
    """An experiment of three hosts."""
    file = folder / "star.toml"
    file.write_text(STAR.format(duration=duration, costs=costs) + "\n".join(more))
    return file


def python(name: str, code: str, on: str = "host0", server: bool = False) -> str:
    """A program on a host; it is written without double quotes."""
    assert '"' not in code and "'''" not in code
    return PROGRAM.format(name=name, on=on, code=code) + ("server = true\n" if server else "")


def said(folder: Path, file: Path, name: str) -> str:
    """Run the experiment; what the program of that name printed."""
    fl.run(file, out=folder / "out")
    return (folder / "out/programs" / f"{name}.out").read_text()


CALLS = """
import os, time
begin = time.monotonic_ns()
for _ in range(100):
    os.getppid()
print(time.monotonic_ns() - begin)
"""


@needs_kernel
def test_a_system_call_takes_its_time(tmp_path: Path) -> None:
    took = int(said(tmp_path, star(tmp_path, 'syscall = "1us"', python("p", CALLS)), "p"))
    assert 100_000 <= took <= 100_010, "100 calls of 1 us, and two looks at the clock"


@needs_kernel
@pytest.mark.parametrize(("cores", "least"), [(1, 200_000), (2, 100_000)])
def test_programs_of_a_host_share_its_processors(tmp_path: Path, cores: int, least: int) -> None:
    """Two programs that begin together at 100 ms; a third one has a host of its own."""
    at = "import time\ntime.sleep(0.1 - (time.monotonic() - 3.04))\n"
    programs = [python(name, at + CALLS, on) for name, on in [("a", "host0"), ("b", "host0"), ("c", "host1")]]
    fl.run(star(tmp_path, f'syscall = "1us"\ncores = {cores}', *programs), out=tmp_path / "out")
    took = {name: int((tmp_path / f"out/programs/{name}.out").read_text()) for name in "abc"}
    for name in "ab":
        assert least - 2000 <= took[name] <= least + 3000, took
    assert 100_000 <= took["c"] <= 100_010, "other hosts go on"


COPIES = """
import os, time
zero, null = os.open('/dev/zero', os.O_RDONLY), os.open('/dev/null', os.O_WRONLY)
pipe = os.pipe()
data = bytes(50_000)
begin = time.monotonic_ns()
os.write(pipe[1], data)
print(time.monotonic_ns() - begin)
"""


@needs_kernel
def test_copied_bytes_take_their_time(tmp_path: Path) -> None:
    took = int(said(tmp_path, star(tmp_path, 'copy = "400ps"', python("p", COPIES)), "p"))
    assert 20_000 <= took <= 20_010, "50,000 bytes of 0.4 ns"


WAKES = """
import os, time
asks, answers = os.pipe(), os.pipe()
if os.fork() == 0:
    os.close(asks[1])
    while os.read(asks[0], 1):
        os.write(answers[1], b'x')
    os._exit(0)
begin = time.monotonic_ns()
for _ in range(100):
    os.write(asks[1], b'x')
    os.read(answers[0], 1)
print(time.monotonic_ns() - begin)
"""


@needs_kernel
def test_a_wakeup_takes_its_time(tmp_path: Path) -> None:
    """Each of the two processes wakes the other one 100 times."""
    took = int(said(tmp_path, star(tmp_path, 'wakeup = "2us"', python("p", WAKES)), "p"))
    assert 396_000 <= took <= 402_000


@needs_kernel
@pytest.mark.parametrize(("cores", "each_us"), [(1, 2), (2, 7)])
def test_a_processor_without_work_leaves_the_idle_state_first(
    tmp_path: Path, cores: int, each_us: int
) -> None:
    """Of two processors, each process wakes the one that has no work; a single one always has some."""
    costs = f'wakeup = "2us"\nidle = "5us"\ncores = {cores}'
    took = int(said(tmp_path, star(tmp_path, costs, python("p", WAKES)), "p"))
    assert took == pytest.approx(200_000 * each_us, abs=15_000)


POLLS = """
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(('', 9))
s.setblocking(False)
polls = 0
while True:
    try:
        s.recv(100)
        break
    except BlockingIOError:
        polls += 1
print(polls)
"""
SENDS = """
import socket, time
time.sleep(0.15)
socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('host0', 9))
"""


@needs_kernel
def test_a_program_that_polls_without_the_clock_makes_progress(tmp_path: Path) -> None:
    programs = python("polls", POLLS), python("sends", SENDS, "host1")
    polls = int(said(tmp_path, star(tmp_path, 'syscall = "5us"', *programs), "polls"))
    assert 28_000 <= polls <= 31_000, "a poll in 5 us, for about 150 ms"


@needs_kernel
def test_a_program_that_computes_stops_time_as_ever(tmp_path: Path) -> None:
    file = star(tmp_path, 'profile = "xeon-e5-2430"', python("spins", "while True: pass"))
    with pytest.raises(fl.RunError, match=r"virtual time stood still for 3 s.*the processor runs 'python3'"):
        fl.run(file, out=tmp_path / "out", patience=3)


ECHO = """
import socket
listener = socket.socket()
listener.bind(('', 80))
listener.listen()
connection, _ = listener.accept()
while (asked := connection.recv(100)):
    connection.send(asked)
"""
ASK = """
import socket, time
time.sleep(0.05)
s = socket.create_connection(('host1', 80))
begin = time.monotonic_ns()
for _ in range(200):
    s.send(b'x')
    s.recv(100)
print((time.monotonic_ns() - begin) // 200)
"""


def round_trip_ns(folder: Path, costs: str) -> int:
    """Nanoseconds of a request and its answer."""
    programs = python("server", ECHO, "host1", server=True), python("client", ASK)
    return int(said(folder, star(folder, costs, *programs), "client"))


@needs_kernel
def test_requests_take_the_time_of_their_calls_packets_and_wakeups(tmp_path: Path) -> None:
    """Each way: the call that sends, the packet at both ends, and at the receiver, which has no work
    before, the idle state and the wake-up. Reads begin before it."""
    free = round_trip_ns(tmp_path, 'profile = "none"')
    costs = {"syscall": 1, "send": 5, "moderation": 10, "idle": 6, "interrupt": 3, "packet": 4, "wakeup": 2}
    took = round_trip_ns(tmp_path, "\n".join(f'{key} = "{us}us"' for key, us in costs.items())) - free
    assert took == pytest.approx(2000 * sum(costs.values()), abs=200)


SERVES = """
import os, socket
listener = socket.socket()
listener.bind(('', 80))
listener.listen()
while True:
    connection, _ = listener.accept()
    if os.fork() == 0:
        while (asked := connection.recv(100)):
            connection.send(asked)
        os._exit(0)
    connection.close()
"""
ASKS = """
import os, socket, time
time.sleep(0.05)
for _ in range(3):
    if os.fork() == 0:
        s = socket.create_connection(('host1', 80))
        end, count = time.monotonic() + 0.02, 0
        while time.monotonic() < end:
            s.send(b'x')
            s.recv(100)
            count += 1
        os.write(1, b'%d ' % count)
        os._exit(0)
for _ in range(3):
    os.wait()
"""


@needs_kernel
def test_a_server_has_a_finite_throughput(tmp_path: Path) -> None:
    """Six clients, three on each of two hosts: more than the server's one processor can serve. A request
    takes 4 us of it for its packet, 2 us for a wake-up, two calls of 1 us, and 5 us for the answer; and up to
    3 us, if it has an interrupt of its own."""
    costs = {"syscall": 1, "send": 5, "interrupt": 3, "packet": 4, "wakeup": 2}
    programs = [python("server", SERVES, "host1", server=True)]
    programs += [python(on, ASKS, on) for on in ("host0", "host2")]
    file = star(tmp_path, "\n".join(f'{key} = "{us}us"' for key, us in costs.items()), *programs)
    fl.run(file, out=tmp_path / "out")
    counts = [(tmp_path / f"out/programs/{on}.out").read_text() for on in ("host0", "host2")]
    served = sum(int(word) for count in counts for word in count.split())
    assert 20_000 / 16 * 0.97 <= served <= 20_000 / 13 * 1.02, counts


FLOW = """
[[flows]]
from = "host0"
to = "host1"
size = "5MB"
"""


@needs_kernel
def test_receivers_take_packets_together(tmp_path: Path) -> None:
    """The card's interrupt comes for many packets, which the stack gets as one: it sends fewer ACKs."""
    folder, sent = tmp_path, {}
    for moderation in ("0s", "30us"):
        costs = f'packet = "100ns"\nmoderation = "{moderation}"'
        result = fl.run(star(folder, costs, FLOW))
        sent[moderation] = result.manifest["hosts"]["frames"]["sent"]
        assert result.summary["flows_complete"] == 1
    data = 5_000_000 / 1448
    assert sent["30us"] - data < 0.5 * (sent["0s"] - data), sent


@needs_kernel
@pytest.mark.parametrize("moderation", ["0s", "50us"])
def test_what_processors_have_done_is_a_table(tmp_path: Path, moderation: str) -> None:
    """Without other costs a receiver's time is that of its packets, its ACKs and its interrupts. The card
    causes all of it but the ACKs that the program's reads send."""
    costs = f'packet = "1us"\nsend = "2us"\ninterrupt = "3us"\nmoderation = "{moderation}"'
    result = fl.run(star(tmp_path, costs, FLOW))
    sender, receiver = result.table("processors").to_dict("records")
    ports = result.table("ports").set_index("name")
    came, sent = ports["delivered"].to_dict()["host1.port"], ports["offered"].to_dict()["host1.nic"]
    expected_us = came + 2 * sent + 3 * receiver["interrupts"]
    assert receiver["busy_us"] == pytest.approx(expected_us, abs=10)
    assert came + 3 * receiver["interrupts"] <= receiver["card_us"] <= receiver["busy_us"]
    assert 0 < sender["card_us"] < sender["busy_us"], "the program sends, too"
    assert 0 < receiver["interrupts"] < came / 10, "what comes while it works needs no interrupt"


FLOOD = """
import socket, time
time.sleep(0.02)
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for _ in range(3000):
    s.sendto(bytes(100), ('host0', 9))
"""
COUNTS = """
import time
time.sleep(0.15)
print(next(line for line in open('/proc/net/dev') if 'eth0' in line))
"""


@needs_kernel
def test_a_card_holds_so_many_packets_for_a_slow_processor(tmp_path: Path) -> None:
    """At 100 us each, the first packet, a batch of 64 and the 1,024 that the card holds remain. What counts
    them has the other processor."""
    programs = python("flood", FLOOD, "host1"), python("counts", COUNTS)
    words = said(tmp_path, star(tmp_path, 'packet = "100us"\ncores = 2', *programs), "counts").split()
    assert (int(words[2]), int(words[4])) == (1089, 1911), "received, dropped"


@needs_kernel
def test_a_slow_processor_is_the_bottleneck(tmp_path: Path) -> None:
    """Packets of 1448 B in 2.4 us each are 4.8 Gb/s, whatever the link has."""
    result = fl.run(star(tmp_path, 'packet = "2400ns"', FLOW, duration="40ms"))
    took = result.flows["fct_us"][0]
    assert took == pytest.approx(5_000_000 * 8 / (1448 * 8 / 2.4), rel=0.05)


@needs_kernel
def test_runs_with_processors_repeat(tmp_path: Path) -> None:
    more = python("server", ECHO, "host1", server=True), python("client", ASK), FLOW
    file = star(tmp_path, 'profile = "xeon-e5-2430"\nmoderation = "8us"', *more)
    assert fl.run(file).digest == fl.run(file).digest


@needs_kernel
def test_without_costs_a_run_is_as_it_was(tmp_path: Path) -> None:
    file = star(tmp_path, "", FLOW, python("calls", CALLS))
    plain = tmp_path / "plain.toml"
    plain.write_text(file.read_text().replace("[linux.cpu]", ""))
    assert fl.run(file).digest == fl.run(plain).digest


def test_what_is_measured_can_be_pasted(command: Command, tmp_path: Path) -> None:
    done = command("doctor", "--measure-cpu")
    assert done.returncode == 0, done.stderr
    table = done.stdout.split("[linux.cpu]")[1]
    file = star(tmp_path, table, FLOW)
    parameters = json.loads(core.Spec.read(file).check().linux_plan())["parameters"]
    costs = {p["name"]: int(p["value"]) for p in parameters if p["module"] == "firstlight"}
    measured = {"cores", "syscall_ps", "clock_ps", "wakeup_ps", "copy_ps", "packet_ps", "send_ps"}
    if len(os.sched_getaffinity(0)) > 1:
        measured |= {"idle_ps", "interrupt_ps"}
    assert measured == set(costs)
    assert 1_000 < costs["clock_ps"] < costs["wakeup_ps"]


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one processor: idle and interrupt need two")
def test_as_json_the_measurement_has_the_same_keys(command: Command) -> None:
    told = json.loads(command("doctor", "--measure-cpu", "--json").stdout)
    assert list(told) == ["cores", *processor.KEYS]
    assert all(re.fullmatch(r"\d+(ps|ns)", told[key]) for key in list(told)[1:])


def test_one_processor_is_measured_without_the_costs_that_need_another() -> None:
    with processor.on_one_processor():
        measured = processor.measure()
    assert measured["cores"] == 1
    assert list(measured)[1:] == [key for key in processor.KEYS if key not in ("idle", "interrupt")]
    assert "# Not measured: idle, interrupt (they need two processors), mod" in processor.as_toml(measured)


def test_times_are_written_in_the_unit_that_keeps_their_digits() -> None:
    assert [processor.as_time(ns) for ns in (0.0321, 9.94, 17.2)] == ["32ps", "9940ps", "17ns"]
