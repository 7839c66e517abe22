"""LibADU: what it counts of the writes of real programs, on this machine's own TCP."""

import os
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from firstlight.linux import installed

MAGIC = 0x31554441
HEAD = struct.Struct("<IIQQQ32x")
ENTRY = struct.Struct("<QI4s4s2s2sQq24x")
ENTRIES = 64
GIVEN_BACK = 2**64 - 1
SYN = 1
"""The side that connected has sent one byte more than its data."""


@dataclass(frozen=True)
class Account:
    """One connection of the table."""

    to: tuple[str, int]
    before: int
    written: int


class Counted:
    """A table, and programs that are counted in it."""

    def __init__(self, place: Path) -> None:
        self.file = place / "table"
        self.file.write_bytes(HEAD.pack(MAGIC, ENTRIES, 0, 0, 0) + bytes(ENTRY.size * ENTRIES))

    def environment(self) -> dict[str, str]:
        return {**os.environ, "LD_PRELOAD": str(installed.LIBADU), "LIBADU": str(self.file)}

    def start(self, code: str, *words: object) -> "subprocess.Popen[str]":
        """Start a Python program whose first words are these."""
        command = [sys.executable, "-c", PRELUDE + code, *map(str, words)]
        return subprocess.Popen(command, env=self.environment(), text=True, stdin=-1, stdout=-1, stderr=-1)

    def run(self, code: str, *words: object) -> str:
        with self.start(code, *words) as program:
            output, errors = program.communicate(timeout=60)
        assert program.returncode == 0, errors
        return output

    def accounts(self) -> list[Account]:
        content = self.file.read_bytes()
        rows = [ENTRY.unpack_from(content, HEAD.size + i * ENTRY.size) for i in range(ENTRIES)]
        return [
            Account((socket.inet_ntoa(to), int.from_bytes(port, "big")), before, written)
            for cookie, ready, _, to, _, port, before, written in rows
            if cookie not in (0, GIVEN_BACK) and ready
        ]

    def account(self) -> Account:
        (only,) = self.accounts()
        return only

    def missed(self) -> int:
        """Writes for which the table had no room."""
        return int(HEAD.unpack_from(self.file.read_bytes())[4])

    def changes(self) -> int:
        return int(HEAD.unpack_from(self.file.read_bytes())[2])


PRELUDE = """
import ctypes, os, socket, sys, time
port = int(sys.argv[1]) if len(sys.argv) > 1 else 0
def connected():
    return socket.create_connection(("127.0.0.1", port))
def say(value):
    print(value, flush=True)
"""


@pytest.fixture
def counted(tmp_path: Path) -> Counted:
    return Counted(tmp_path)


@contextmanager
def listening(receive: int | None = None) -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        if receive:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive)
        yield listener


def taken(listener: socket.socket) -> int:
    """Accept a connection and count what comes."""
    count = 0
    connection, _ = listener.accept()
    with connection:
        while received := connection.recv(1 << 20):
            count += len(received)
    return count


WAYS = {
    "write": "os.write(s.fileno(), b'x' * 1000)",
    "writev": "os.writev(s.fileno(), [b'x' * 300, b'', b'y' * 700])",
    "send": "s.send(b'x' * 1000)",
    "sendto": "s.sendto(b'x' * 1000, ('127.0.0.1', port))",
    "sendmsg": "s.sendmsg([b'x' * 1, b'y' * 999])",
    "sendfile": "os.sendfile(s.fileno(), file, 0, 1000)",
    "sendfile beyond the end": "os.sendfile(s.fileno(), file, 2000, 1 << 20)",
    "sendfile from its place": "os.lseek(file, 2000, 0); os.sendfile(s.fileno(), file, None, 1 << 20)",
    "splice": "os.write(pipe[1], b'x' * 1000); os.splice(pipe[0], s.fileno(), 1 << 20)",
    "sendmmsg": "libc.sendmmsg(s.fileno(), messages, 2, 0)",
}
SETTING = """
import tempfile
named = tempfile.NamedTemporaryFile()
named.write(b'z' * 3000); named.flush()
file, pipe, libc = os.open(named.name, os.O_RDONLY), os.pipe(), ctypes.CDLL(None)
class Part(ctypes.Structure):
    _fields_ = [("base", ctypes.c_char_p), ("length", ctypes.c_size_t)]
class Message(ctypes.Structure):
    _fields_ = [("name", ctypes.c_void_p), ("namelen", ctypes.c_uint32), ("iov", ctypes.POINTER(Part)),
        ("iovlen", ctypes.c_size_t), ("control", ctypes.c_void_p), ("controllen", ctypes.c_size_t),
        ("flags", ctypes.c_long), ("taken", ctypes.c_uint32)]
parts = [Part(b"x" * n, n) for n in (400, 600)]
messages = (Message * 2)(*(Message(iov=ctypes.pointer(part), iovlen=1) for part in parts))
s = connected()
"""


@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_write_counts(counted: Counted, way: str) -> None:
    with (
        listening() as listener,
        counted.start(SETTING + WAYS[way], port := listener.getsockname()[1]) as program,
    ):
        assert taken(listener) == 1000
        _, errors = program.communicate()
    assert not errors
    assert counted.account() == Account(("127.0.0.1", port), SYN, 1000)


def wait_for(counted: Counted, written: int) -> None:
    """Until so much is counted."""
    deadline = time.monotonic() + 30
    while not any(account.written == written for account in counted.accounts()):
        assert time.monotonic() < deadline, counted.accounts()
        time.sleep(0.005)


def test_a_blocked_write_counts_whole_while_it_waits(counted: Counted) -> None:
    code = "connected().sendall(b'x' * 20_000_000)"
    with listening() as listener, counted.start(code, listener.getsockname()[1]):
        wait_for(counted, 20_000_000)
        assert taken(listener) == 20_000_000
    assert counted.account().written == 20_000_000


def test_a_write_that_is_not_taken_whole_counts_what_was_taken(counted: Counted) -> None:
    code = """
s = connected()
s.setblocking(False)
taken = s.send(b'x' * 50_000_000)
try:
    for _ in range(100): taken += s.send(b'y' * 1_000_000)
except BlockingIOError:
    say(taken)
sys.stdin.read()
"""
    with listening() as listener, counted.start(code, listener.getsockname()[1]) as program:
        assert program.stdin and program.stdout
        written = int(program.stdout.readline())
        assert 10_000 < written < 50_000_000
        assert counted.account().written == written
        program.stdin.close()
        assert taken(listener) == written


def test_corked_data_counts_though_it_is_held_back(counted: Counted) -> None:
    code = """
s = connected()
s.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
s.send(b'x' * 100)
say("written")
sys.stdin.read()
"""
    with listening() as listener, counted.start(code, listener.getsockname()[1]) as program:
        assert program.stdin and program.stdout
        assert program.stdout.readline() == "written\n"
        assert counted.account().written == 100
        program.stdin.close()
        assert taken(listener) == 100


def test_what_is_closed_keeps_its_account(counted: Counted) -> None:
    """The kernel still sends what it holds: the engine sees when the connection is over."""
    code = "s = connected(); s.send(b'x' * 5000); s.close(); t = connected(); t.send(b'y' * 7)"
    with listening() as listener, counted.start(code, listener.getsockname()[1]):
        assert [taken(listener), taken(listener)] == [5000, 7]
    assert sorted(account.written for account in counted.accounts()) == [7, 5000]


def test_processes_that_share_a_connection_share_its_account(counted: Counted) -> None:
    code = """
s = connected()
s.send(b'x' * 10)
if os.fork() == 0:
    os.dup2(s.fileno(), 77)
    os.write(77, b'y' * 20)
    os._exit(0)
os.wait()
s.send(b'z' * 30)
"""
    with listening() as listener, counted.start(code, listener.getsockname()[1]):
        assert taken(listener) == 60
    assert counted.account().written == 60


def test_a_descriptor_that_is_used_again_is_another_connection(counted: Counted) -> None:
    """Closed where no library sees it, and opened anew with the same number."""
    code = """
import io
s = connected()
number = s.fileno()
s.send(b'x' * 10)
ctypes.CDLL(None).syscall(3, number)
t = connected()
assert t.fileno() == number
t.send(b'y' * 20)
os._exit(0)
"""
    with listening() as listener, counted.start(code, listener.getsockname()[1]):
        assert [taken(listener), taken(listener)] == [10, 20]
    assert sorted(account.written for account in counted.accounts()) == [10, 20]


def test_addresses_of_ipv4_that_are_written_as_ipv6_count(counted: Counted) -> None:
    code = """
s = socket.socket(socket.AF_INET6)
s.connect(("::ffff:127.0.0.1", port))
s.send(b'x' * 9)
"""
    with listening() as listener, counted.start(code, port := listener.getsockname()[1]):
        assert taken(listener) == 9
    assert counted.account() == Account(("127.0.0.1", port), SYN, 9)


def test_only_tcp_over_ipv4_counts(counted: Counted) -> None:
    code = """
a, b = socket.socketpair()
a.send(b'x' * 5)
u = socket.socket(type=socket.SOCK_DGRAM)
u.connect(("127.0.0.1", 9))
u.send(b'x')
os.write(os.open("/dev/null", os.O_WRONLY), b'x')
try:
    socket.socket().send(b'x')
except BrokenPipeError:
    say("pipe")
six = socket.create_server(("::1", 0), family=socket.AF_INET6)
socket.create_connection(six.getsockname()[:2]).send(b'x')
"""
    assert counted.run(code) == "pipe\n"
    assert counted.accounts() == [] and counted.changes() == 0


def test_what_was_written_before_is_told_apart(counted: Counted) -> None:
    """Written where the library does not look, by the number of the call."""
    code = """
import subprocess
s = connected()
ctypes.CDLL(None).syscall(1, s.fileno(), b'x' * 300, ctypes.c_size_t(300))
time.sleep(0.05)
s.send(b'y' * 40)
"""
    with listening() as listener, counted.start(code, port := listener.getsockname()[1]):
        assert taken(listener) == 340
    assert counted.account() == Account(("127.0.0.1", port), SYN + 300, 40)


def test_accounts_that_the_engine_gave_back_are_used_again(counted: Counted) -> None:
    """In a table without room a place that was given back is taken, and a write without a place is missed."""
    content = bytearray(counted.file.read_bytes())
    for i in range(ENTRIES):
        cookie = GIVEN_BACK if i == 5 else 2**40 + i
        ENTRY.pack_into(content, HEAD.size + i * ENTRY.size, cookie, 0, b"", b"", b"", b"", 0, 0)
    counted.file.write_bytes(content)
    code = "s = connected(); s.send(b'x' * 11); t = connected(); t.send(b'y' * 12)"
    with listening() as listener, counted.start(code, listener.getsockname()[1]):
        assert [taken(listener), taken(listener)] == [11, 12]
    assert counted.account().written == 11 and counted.missed() == 1


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "No such file or directory"),
        (b"", "is no table of LibADU"),
        (bytes(128), "is no table of this LibADU"),
        (HEAD.pack(MAGIC, 7, 0, 0, 0), "is no table of this LibADU"),
    ],
)
def test_a_wrong_table_ends_the_program(tmp_path: Path, content: bytes | None, problem: str) -> None:
    file = tmp_path / "wrong"
    if content is not None:
        file.write_bytes(content)
    given = {**os.environ, "LD_PRELOAD": str(installed.LIBADU), "LIBADU": str(file)}
    done = subprocess.run(["true"], env=given, capture_output=True, text=True, check=False)
    assert done.returncode == 125 and done.stderr.startswith(f"libadu: LIBADU={file}: {problem}"), done


def test_the_calls_stand_in_the_documents() -> None:
    command = ["nm", "-D", "--defined-only", str(installed.LIBADU)]
    exported = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    names = {line.split()[-1] for line in exported.splitlines()}
    page = Path(__file__).parents[2] / "docs" / "models" / "adu-library.md"
    table = page.read_text().partition("## What counts")[2].partition("\n## ")[0]
    assert all(f"`{name}`" in table for name in names), names
