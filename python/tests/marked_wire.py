"""Two network namespaces and a cable on which each ACK can be marked and any packet dropped. Root is
needed."""

import ctypes
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

PATH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
BTF = Path("/sys/kernel/btf/vmlinux")
CLONE_NEWNET = 0x40000000


def run(*command: str | Path, text: str | None = None) -> str:
    """Run a command with that input and return its output; its errors become the test's."""
    words = [str(word) for word in command]
    environment = {**os.environ, "PATH": PATH}
    done = subprocess.run(words, input=text, text=True, capture_output=True, env=environment)
    assert done.returncode == 0, f"{' '.join(words)}: {done.stderr.strip()}"
    return str(done.stdout)


def unfit() -> str | None:
    """Why this machine cannot load a congestion control 'retcp' and carry traffic with it."""
    packages = {"clang": "clang", "bpftool": "bpftool", "ip": "iproute2", "tc": "iproute2"}
    absent = {package for tool, package in packages.items() if not shutil.which(tool, path=PATH)}
    if not Path("/usr/include/bpf/bpf_helpers.h").exists():
        absent.add("libbpf-dev")
    if absent:
        return f"missing packages: apt install {' '.join(sorted(absent))}"
    if os.geteuid() != 0:
        return "loading BPF struct_ops needs root"
    if subprocess.run(["unshare", "--mount", "--net", "true"], capture_output=True).returncode:
        return "this machine lets not even root make network namespaces"
    if not BTF.exists():
        return f"the kernel has no BTF ({BTF})"
    version = re.match(r"(\d+)\.(\d+)", os.uname().release)
    if version and (int(version[1]), int(version[2])) < (6, 10):
        return f"kernel {os.uname().release}: cong_control() of BPF needs 6.10 or newer"
    return None


def loaded() -> bool:
    """Another congestion control of that name is loaded in the kernel."""
    return "retcp" in Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()


class Inside:
    """Move this thread into a network namespace for a while, so that its sockets belong there."""

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
    """Two namespaces, a cable, and at each end the program that marks and drops arriving packets."""

    maps: dict[str, Path]
    sender: str
    receiver: str
    marked: bool = False

    def _write(self, program: str, drop: int) -> None:
        value = struct.pack("<QQQQ", self.marked, drop, 0, 0).hex(" ").split()
        run("bpftool", "map", "update", "pinned", self.maps[program], "key", *"0000", "value", "hex", *value)

    def mark(self, on: bool) -> None:
        """Mark each ACK from now on, or none; drop nothing more, and restart the counters."""
        self.marked = on
        self._write("acks", 0)
        self._write("data", 0)

    def drop(self, program: str, which: int) -> None:
        """Drop the next packet if bit 0 is set, the one after it if bit 1 is, and so on."""
        self._write(program, which)

    def reductions_told(self) -> int:
        """Data packets with CWR, the sign of a reduced window, since the last change."""
        text = run("bpftool", "-j", "map", "lookup", "pinned", self.maps["data"], "key", *"0000")
        value = bytes(int(byte, 16) for byte in json.loads(text)["value"])
        return int(struct.unpack("<QQQQ", value)[3])


def read(far: socket.socket) -> None:
    """Read everything that arrives at the receiver."""
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
        """Send so many full packets, until all are acknowledged."""
        self.near.sendall(bytes(packets * self.packet))
        deadline = time.monotonic() + 10
        while self.info()[1][4]:
            if time.monotonic() > deadline:
                raise TimeoutError("not acknowledged within 10 s")
            time.sleep(0.001)
        return self.window
