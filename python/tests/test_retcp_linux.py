"""reTCP for Linux: its header in user space against the simulated one, and its BPF program in this machine's kernel."""

import ctypes
import json
import os
import shutil
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[2] / "linux" / "retcp"
PATH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
BTF = Path("/sys/kernel/btf/vmlinux")
INFINITE = 0x7FFFFFFF
OPEN, CWR = 0, 2
CLONE_NEWNET = 0x40000000


def run(*command: str | Path, **options: str) -> str:
    """Runs a command and returns its output; its errors become the test's."""
    done = subprocess.run(
        [str(word) for word in command],
        text=True,
        capture_output=True,
        env={**os.environ, "PATH": PATH},
        **options,
    )
    assert done.returncode == 0, f"{' '.join(map(str, command))}: {done.stderr.strip()}"
    return done.stdout


# ---- The header in user space ----

# Runs of equal steps: the step, packets delivered, the windows after each, the threshold. The numbers are what
# `ReTcp` of crates/transport does with alpha 2 and beta 0.5 from a window of 10; a loss is a whole recovery.
GOLDEN = [
    ("ack", 2, "12 14 16", 0xFFFFFFFF),
    ("marked", 2, "34", 0xFFFFFFFF),
    ("marked", 3, "37 40", 0xFFFFFFFF),
    ("ack", 1, "21", 0xFFFFFFFF),
    ("loss", 0, "10", 10),
    ("ack", 1, "10 10 10 10 10 10 10 10 10 11 11 11", 10),
    ("marked", 2, "22", 10),
    ("marked", 3, "22 22 22 22 22 23 23 23 23 23", 10),
    ("loss", 0, "11", 11),
    ("marked", 2, "11 11 11 11 11 12 12 12 12", 11),
    ("ack", 1, "7 8 9 10 11 11 11 11 12", 11),
    ("marked", 1, "24", 11),
    ("ack", 1, "12", 11),
    ("loss", 0, "6", 6),
    ("loss", 0, "3", 3),
    ("loss", 0, "2", 2),
    ("marked", 1, "4", 2),
    ("ack", 1, "3", 2),
    ("marked", 1, "6", 2),
    ("marked", 2, "6 6 7 7 7", 2),
    ("ack", 1, "4", 2),
]


@pytest.fixture(scope="module")
def steps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not shutil.which("cc"):
        pytest.skip("a C compiler is missing: apt install build-essential")
    program = tmp_path_factory.mktemp("retcp") / "steps"
    run("cc", "-O2", "-Wall", "-Wextra", "-Werror", "-o", program, SOURCES / "test" / "steps.c")
    return program


def play(
    steps: Path, script: list[tuple[str, int]], alpha: int = 200, beta: int = 50
) -> list[tuple[int, int]]:
    """Window and threshold after each step."""
    lines = "".join(f"{verb} {delivered}\n" for verb, delivered in script)
    output = run(steps, str(alpha), str(beta), input=lines)
    rows = [line.split() for line in output.splitlines()]
    return [(int(cwnd), int(ssthresh)) for cwnd, ssthresh in rows]


def golden() -> tuple[list[tuple[str, int]], list[tuple[int, int]]]:
    flat = [(verb, n, int(cwnd), limit) for verb, n, cwnds, limit in GOLDEN for cwnd in cwnds.split()]
    return [(verb, n) for verb, n, _, _ in flat], [(cwnd, limit) for _, _, cwnd, limit in flat]


def test_the_header_moves_the_window_as_the_simulated_retcp(steps: Path) -> None:
    script, windows = golden()
    assert play(steps, script) == windows
    for alpha, beta in [(199, 50), (200, 55)]:
        assert play(steps, script, alpha, beta) != windows


def test_marks_without_factors_change_nothing(steps: Path) -> None:
    script, _ = golden()
    script += [
        ("timeout", 0),
        ("marked", 9),
        ("timeout", 0),
        ("ack", 9),
        ("needless", 0),
        ("marked", 3),
        ("needless", 0),
    ]
    plain = [("ack" if verb == "marked" else verb, delivered) for verb, delivered in script]
    # The stack clears no credit of ours on its way into CWR, and no other trace of the marks may be left.
    assert play(steps, script, 100, 100) == play(steps, plain, 100, 100)


def test_a_needless_reduction_is_taken_back(steps: Path) -> None:
    assert play(steps, [("ack", 10), ("needless", 0)])[-1] == (20, 0xFFFFFFFF)
    assert play(steps, [("marked", 10), ("needless", 0)])[-1] == (30, 0xFFFFFFFF)


# ---- The BPF program in this machine's kernel ----


def unfit() -> str | None:
    """Why this machine cannot load it."""
    packages = {"clang": "clang", "bpftool": "bpftool", "ip": "iproute2", "tc": "iproute2"}
    absent = {package for tool, package in packages.items() if not shutil.which(tool, path=PATH)}
    if not Path("/usr/include/bpf/bpf_helpers.h").exists():
        absent.add("libbpf-dev")
    if absent:
        return f"missing packages: apt install {' '.join(sorted(absent))}"
    if os.geteuid() != 0:
        return "loading BPF struct_ops needs root"
    if not BTF.exists():
        return f"the kernel has no BTF ({BTF})"
    if tuple(int(part) for part in os.uname().release.split(".")[:2]) < (6, 10):
        return f"kernel {os.uname().release}: cong_control() of BPF needs 6.10 or newer"
    if "retcp" in Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split():
        return "a congestion control 'retcp' is loaded already"
    return None


class Inside:
    """This thread lives in a network namespace for a while: sockets made in it belong there."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.libc = ctypes.CDLL(None, use_errno=True)

    def _enter(self, path: str) -> None:
        with open(path) as namespace:
            if self.libc.setns(namespace.fileno(), CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), f"setns {path}")

    def __enter__(self) -> None:
        self.home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        self._enter(f"/run/netns/{self.name}")

    def __exit__(self, *_: object) -> None:
        if self.libc.setns(self.home, CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns back")
        os.close(self.home)


@dataclass
class Wire:
    """Two namespaces, a cable, and at each end the program that marks and drops what comes in."""

    maps: dict[str, Path]
    sender: str
    receiver: str
    marked: bool = False

    def _write(self, program: str, drop: int) -> None:
        value = struct.pack("<QQQQ", self.marked, drop, 0, 0).hex(" ").split()
        run("bpftool", "map", "update", "pinned", self.maps[program], "key", *"0000", "value", "hex", *value)

    def mark(self, on: bool) -> None:
        """Marks each ACK from now on, or none; drops nothing more, and counts anew."""
        self.marked = on
        self._write("acks", 0)
        self._write("data", 0)

    def drop(self, program: str, which: int) -> None:
        """Drops the next packet if bit 0 is set, the one after it if bit 1 is, and so on."""
        self._write(program, which)

    def reductions_told(self) -> int:
        """Data packets since the last change that told the receiver of a reduced window (CWR)."""
        text = run("bpftool", "-j", "map", "lookup", "pinned", self.maps["data"], "key", *"0000")
        value = bytes(int(byte, 16) for byte in json.loads(text)["value"])
        return int(struct.unpack("<QQQQ", value)[3])


def read(far: socket.socket) -> None:
    """The receiver takes everything as it comes."""
    with far:
        while far.recv(1 << 20):
            pass


@dataclass
class Connection:
    """A connection over the wire whose sender uses one congestion control."""

    wire: Wire
    cc: str
    near: socket.socket = field(init=False)

    def __post_init__(self) -> None:
        with Inside(self.wire.receiver), socket.create_server(("10.77.0.2", 0)) as server:
            with Inside(self.wire.sender):
                self.near = socket.socket()
            self.near.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, self.cc.encode())
            self.near.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.near.settimeout(10)
            self.near.connect(server.getsockname())
            far, _ = server.accept()
        threading.Thread(target=read, args=(far,), daemon=True).start()

    def info(self) -> tuple[bytes, tuple[int, ...]]:
        raw = self.near.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
        return raw[:8], struct.unpack("<24I", raw[8:])

    @property
    def state(self) -> int:
        return self.info()[0][1]

    @property
    def window(self) -> tuple[int, int]:
        """Window and threshold."""
        numbers = self.info()[1]
        return numbers[18], numbers[17]

    @property
    def copies(self) -> int:
        return self.info()[1][23]

    @property
    def packet(self) -> int:
        """Bytes in a full packet."""
        return self.info()[1][2]

    def send(self, packets: int = 1) -> tuple[int, int]:
        """So many full packets, until all are acknowledged."""
        self.near.sendall(bytes(packets * self.packet))
        deadline = time.monotonic() + 10
        while self.info()[1][4]:
            assert time.monotonic() < deadline, "not acknowledged within 10 s"
            time.sleep(0.001)
        return self.window


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiled programs: circuit.o, retcp.o, and plain.o with factors of one."""
    if reason := unfit():
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("bpf")
    (folder / "vmlinux.h").write_text(run("bpftool", "btf", "dump", "file", BTF, "format", "c"))
    plain = ("-DRETCP_ALPHA=100", "-DRETCP_BETA=100")
    for name, source, extra in [
        ("circuit", "test/circuit_bpf.c", ()),
        ("retcp", "retcp_bpf.c", ()),
        ("plain", "retcp_bpf.c", plain),
    ]:
        options = ("-O2", "-g", "-Wall", "-Werror", "-target", "bpf", "-I", folder, *extra)
        run("clang", *options, "-c", SOURCES / source, "-o", folder / f"{name}.o")
    return folder


@pytest.fixture(scope="module")
def wire(objects: Path) -> Iterator[Wire]:
    """Everything that it makes is gone afterwards, whatever fails."""
    a, b = (f"firstlight-{os.getpid()}-{end}" for end in "ab")
    pins = objects / "pins"
    pins.mkdir()
    with ExitStack() as undo:
        run("mount", "-t", "bpf", "bpf", pins)
        undo.callback(run, "umount", pins)
        for end in (a, b):
            run("ip", "netns", "add", end)
            undo.callback(run, "ip", "netns", "delete", end)
        run("ip", "-n", a, "link", "add", "wire", "type", "veth", "peer", "name", "wire", "netns", b)
        for end, address, program in [(a, "10.77.0.1/24", "acks"), (b, "10.77.0.2/24", "data")]:
            run("ip", "-n", end, "addr", "add", address, "dev", "wire")
            run("ip", "-n", end, "link", "set", "wire", "up", "gso_max_segs", "1")
            subnet = ("10.77.0.0/24", "dev", "wire", "initcwnd", "40", "quickack", "1")
            run("ip", "-n", end, "route", "replace", *subnet)
            for setting in ("tcp_ecn=1", "tcp_no_metrics_save=1", "tcp_early_retrans=0"):
                run("ip", "netns", "exec", end, "sysctl", "-qw", f"net.ipv4.{setting}")
            (pins / program).mkdir()
            run(
                "bpftool", "prog", "loadall", objects / "circuit.o", pins / program, "pinmaps", pins / program
            )
            run("tc", "-n", end, "qdisc", "add", "dev", "wire", "clsact")
            pinned = ("object-pinned", pins / program / program)
            run("tc", "-n", end, "filter", "add", "dev", "wire", "ingress", "bpf", "direct-action", *pinned)
        yield Wire({program: pins / program / "control" for program in ("acks", "data")}, a, b)


@pytest.fixture
def load(objects: Path) -> Iterator[ExitStack]:
    with ExitStack() as undo:
        yield undo


def register(objects: Path, name: str, undo: ExitStack) -> None:
    run("bpftool", "struct_ops", "register", objects / f"{name}.o")
    undo.callback(run, "bpftool", "struct_ops", "unregister", "name", "retcp")


@pytest.fixture
def retcp(objects: Path, load: ExitStack) -> None:
    register(objects, "retcp", load)


@pytest.fixture
def plain(objects: Path, load: ExitStack) -> None:
    register(objects, "plain", load)


def connect(wire: Wire, cc: str, load: ExitStack) -> Connection:
    connection = Connection(wire, cc)
    load.callback(connection.near.close)
    return connection


def test_marks_move_the_window_by_their_edges_alone(wire: Wire, retcp: None, load: ExitStack) -> None:
    wire.mark(False)
    connection = connect(wire, "retcp", load)
    assert connection.send() == (40, INFINITE)
    for _ in range(2):
        wire.mark(True)
        assert connection.send() == (80, INFINITE)
        for _ in range(5):
            assert connection.send(3) == (80, INFINITE)
        # The stack itself does take the marks for congestion, but the receiver is told nothing of it.
        assert connection.state == CWR
        assert wire.reductions_told() == 0
        wire.mark(False)
        assert connection.send() == (40, INFINITE)
        assert connection.send() == (40, INFINITE)
        assert connection.state == OPEN


def test_other_controllers_take_the_marks_for_congestion(wire: Wire, load: ExitStack) -> None:
    wire.mark(True)
    connection = connect(wire, "reno", load)
    connection.send()
    connection.send()
    assert connection.window[1] <= 20
    assert wire.reductions_told() > 0


def one_loss(connection: Connection) -> tuple[int, int]:
    connection.wire.drop("data", 0b1)
    return connection.send(20)


def three_losses(connection: Connection) -> tuple[int, int]:
    connection.wire.drop("data", 0b1001010)
    return connection.send(30)


def timeout(connection: Connection) -> tuple[int, int]:
    connection.wire.drop("data", (1 << 20) - 1)
    return connection.send(20)


def needless_timeout(connection: Connection) -> tuple[int, int]:
    """The ACKs are lost; then the retransmission timer expires, and the copy is reported as a duplicate."""
    connection.wire.drop("acks", (1 << 64) - 1)
    connection.near.sendall(bytes(20 * connection.packet))
    time.sleep(0.05)
    connection.wire.drop("acks", 0)
    while not connection.copies:
        time.sleep(0.001)
    return connection.send()


@pytest.mark.parametrize("scenario", [one_loss, three_losses, timeout, needless_timeout])
def test_losses_are_recovered_as_by_reno(
    wire: Wire, plain: None, load: ExitStack, scenario: Callable[[Connection], tuple[int, int]]
) -> None:
    """With factors of one, reTCP must do what the kernel's Reno does, marks or not; twice, from where it came to."""
    seen = []
    for cc, marked in [("reno", False), ("retcp", False), ("retcp", True)]:
        wire.mark(False)
        connection = connect(wire, cc, load)
        wire.mark(marked)
        connection.send()
        seen.append([scenario(connection), scenario(connection), (connection.copies, 0)])
    assert seen[1] == seen[0]
    assert seen[2] == seen[0]


def test_bulk_traffic_flows_through_days_and_nights(wire: Wire, retcp: None, load: ExitStack) -> None:
    wire.mark(False)
    connection = connect(wire, "retcp", load)
    for day in range(20):
        wire.mark(day % 2 == 0)
        wire.drop("data", 1 << 63 >> day)
        connection.send(1000)
    assert connection.copies < 200
