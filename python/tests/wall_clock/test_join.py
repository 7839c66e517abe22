"""Hosts in dilated time on several machines, for which network namespaces stand in."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import firstlight as fl
import pytest
from firstlight import core
from firstlight.cli import app, guarded
from firstlight.dilated import link, machine, machines, outputs, parts, run
from firstlight.errors import PlanError, RunError
from test_dilated import commands, engines, experiment, gone, groups, program

lacking = [f"{check.name}: {check.found}" for check in machine.examine() if check.needed and not check.ok]
needs_machine = pytest.mark.skipif(
    bool(lacking) or os.geteuid() != 0,
    reason=f"needs root and what `firstlight doctor` lists: {', '.join(lacking)}",
)
PORT = 7411
WAIT = "120"


@dataclass
class Machines:
    """The engine's machine and another one, as network namespaces with a cable between them."""

    engine: str
    other: str
    token: Path
    address: str = f"192.0.2.1:{PORT}"

    def start(self, where: str, *words: str) -> "subprocess.Popen[str]":
        """A command of Firstlight's on a machine."""
        return subprocess.Popen(
            ["nsenter", f"--net=/run/netns/{where}", sys.executable, "-m", "firstlight", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )

    def join(self, *words: str, name: str = "b", token: Path | None = None) -> "subprocess.Popen[str]":
        return self.start(
            self.other, "join", self.address, "--name", name, "--token", str(token or self.token), *words
        )

    def run(
        self, file: Path, out: Path, *words: str, hosts: str = "b=host1", wait: str = WAIT
    ) -> "subprocess.Popen[str]":
        given = ("--machine", hosts, "--listen", self.address, "--token", str(self.token))
        return self.start(
            self.engine, "run", str(file), "--out", str(out), *given, "--join-wait", wait, *words
        )

    def stranger(self) -> "subprocess.Popen[str]":
        """Sends datagrams to the engine that no machine has sealed."""
        send = f"s.sendto(bytes(n), ('192.0.2.1', {PORT}))"
        code = "import socket, time\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\nwhile True:\n"
        code += f"  for n in (0, 1, 41, 60, 9000): {send}\n  time.sleep(0.02)\n"
        words = ["nsenter", f"--net=/run/netns/{self.other}", sys.executable, "-c", code]
        return subprocess.Popen(words, stderr=subprocess.DEVNULL, text=True)


@pytest.fixture
def two(tmp_path: Path) -> Iterator[Machines]:
    mark = f"fl{os.getpid()}"
    names = [f"{mark}a", f"{mark}b"]
    token = tmp_path / "token"
    token.write_text("0123456789abcdef\n")
    token.chmod(0o600)
    try:
        for name in names:
            subprocess.run(["ip", "netns", "add", name], check=True)
        ends = ["eth9", "netns", names[0], "type", "veth", "peer", "name", "eth9", "netns", names[1]]
        subprocess.run(["ip", "link", "add", *ends], check=True)
        for index, name in enumerate(names):
            inside = ["ip", "-n", name]
            subprocess.run([*inside, "addr", "add", f"192.0.2.{index + 1}/24", "dev", "eth9"], check=True)
            for device in ("lo", "eth9"):
                subprocess.run([*inside, "link", "set", device, "up"], check=True)
        yield Machines(names[0], names[1], token)
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


@contextlib.contextmanager
def ended(*processes: "subprocess.Popen[str]") -> Iterator[None]:
    """None of them outlives this."""
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.communicate()


PROGRAMS = (
    program("server", "while :; do sleep 0.01; done", on="host1", more="server = true")
    + program("there", "hostname; getent hosts host0; date +%s%N; sleep 0.01; date +%s%N", on="host1")
    + program("ping", "ping -c 3 -i 0.05 host1")
    + program("back", "ping -c 3 -i 0.05 rack0.host2 || ping -c 3 -i 0.05 host2", on="host1")
)


@needs_machine
def test_hosts_of_a_machine_that_joins_are_on_the_fabric(two: Machines, tmp_path: Path) -> None:
    """Packets go both ways, programs run there in dilated time, and what they wrote comes back."""
    file = experiment(tmp_path, PROGRAMS + program("here", "sleep 0.01", on="host2"))
    there = two.join("--once")
    here = two.run(file, tmp_path / "out")
    with ended(there, here, two.stranger()):
        said, _ = here.communicate(timeout=300)
        heard, _ = there.communicate(timeout=60)
    # It may be invalid on a busy machine, but it is a run.
    assert f"stored in {tmp_path / 'out'}" in said, said + heard
    assert there.returncode == 0 and "joined" in heard and "the run is over" in heard, heard
    result = fl.load(tmp_path / "out")
    name, address, before, after = result.programs["there"].splitlines()
    assert name == "host1" and address.startswith("10.0.0.1 ")
    assert int(after) - int(before) >= 10_000_000
    for ping in ("ping", "back"):
        times = [line for line in result.programs[ping].splitlines() if "time=" in line]
        assert len(times) == 3 and all(float(t.split("time=")[1].split()[0]) >= 0.4 for t in times), times
    assert result.manifest["conservation"]["ok"]
    (machine,) = result.manifest["hosts"]["machines"]
    assert (machine["name"], machine["hosts"]) == ("b", 1)
    assert machine["datagrams_refused"] > 0, "those of a stranger"
    assert machine["packets_sent"] >= 6 and machine["packets_received"] >= 6, machine
    # One kernel, one clock: the offset is at most half of the round trip.
    assert abs(machine["clock_offset_us"]) <= machine["round_trip_us"] / 2 + 1, machine
    fidelity = result.manifest["hosts"]["fidelity"]
    assert fidelity["packets_delivered"]["count"] >= machine["packets_sent"]
    assert gone() and groups() == []


@needs_machine
def test_a_machine_needs_the_token_and_the_version(two: Machines, tmp_path: Path) -> None:
    """Another token, a stranger's bytes and a machine that the run does not wait for are refused."""
    wrong = tmp_path / "wrong"
    wrong.write_text("fedcba9876543210\n")
    wrong.chmod(0o600)
    here = two.run(experiment(tmp_path, PROGRAMS), tmp_path / "out", wait="15")
    others = [two.join(token=wrong), two.join(name="c")]
    with ended(here, *others):
        with_wrong, unknown = (other.communicate(timeout=60)[0] for other in others)
        said, _ = here.communicate(timeout=120)
    assert "its token is another one" in with_wrong and others[0].returncode == 1, with_wrong
    assert "no machine c is waited for, but b" in unknown and others[1].returncode == 1, unknown
    assert here.returncode == 1 and "machine b did not join within 15 s: run firstlight join" in said, said
    assert "192.0.2.2: the other side has another token" in said, said


@needs_machine
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGKILL])
@pytest.mark.parametrize("side", ["here", "there"])
def test_nothing_is_left_when_either_side_ends(
    two: Machines, tmp_path: Path, side: str, ending: signal.Signals
) -> None:
    """The other side says so, and the machines are clean."""
    long = program("long", "while :; do sleep 0.001; done", on="host1", more="server = true")
    file = experiment(tmp_path, long + program("here", "sleep 500"), duration="1000s")
    sides = {"there": two.join("--once"), "here": two.run(file, tmp_path / "out")}
    with ended(*sides.values()):
        deadline = time.monotonic() + 120
        while not any("sleep 0.001" in line for line in commands()):
            assert time.monotonic() < deadline and all(s.poll() is None for s in sides.values())
            time.sleep(0.05)
        process, other = sides.pop(side), next(iter(s for n, s in sides.items() if n != side))
        assert len(engines()) >= 4
        process.send_signal(ending)
        process.communicate(timeout=60)
        said, _ = other.communicate(timeout=60)
        assert gone()
    expected = "machine b left in the middle of the run" if side == "there" else "the run was ended there"
    assert expected in said, said
    if ending == signal.SIGKILL:
        fl.run(experiment(tmp_path, program("true", "true")))  # the next run clears the killed one's groups
    assert groups() == []


@needs_machine
def test_nothing_is_left_when_the_engine_of_a_machine_is_killed(two: Machines, tmp_path: Path) -> None:
    long = program("long", "while :; do sleep 0.001; done", on="host1", more="server = true")
    file = experiment(tmp_path, long + program("here", "sleep 500"), duration="1000s")
    there, here = two.join("--once"), two.run(file, tmp_path / "out")
    with ended(there, here):
        deadline = time.monotonic() + 120
        while not any("sleep 0.001" in line for line in commands()):
            assert time.monotonic() < deadline and there.poll() is None and here.poll() is None
            time.sleep(0.05)
        children = Path(f"/proc/{there.pid}/task/{there.pid}/children").read_text().split()
        assert len(children) == 1
        os.kill(int(children[0]), signal.SIGKILL)
        said, _ = here.communicate(timeout=60)
        there.communicate(timeout=60)
        assert "on machine b: the kernel ended by SIGKILL" in said and gone(), said
    fl.run(experiment(tmp_path, program("true", "true")))
    assert groups() == []


@needs_machine
def test_what_fails_on_a_machine_is_said_on_the_other(two: Machines, tmp_path: Path) -> None:
    never = program("never", "sleep 1000", on="host1")
    file = experiment(tmp_path, never + program("here", "true"), duration="0.2s")
    there, here = two.join("--once"), two.run(file, tmp_path / "out")
    with ended(there, here):
        said, _ = here.communicate(timeout=300)
    assert "on machine b: program never on host1" in said and "had not ended" in said, said
    assert gone() and groups() == []


# ---- Who may come, without a machine's rights ----


def tokens(folder: Path, text: str = "0123456789abcdef") -> Path:
    file = folder / "a-token"
    file.write_text(text)
    file.chmod(0o600)
    return file


PART = parts.MachinePart([1], [])


@contextlib.contextmanager
def gate(folder: Path, wait: float = 20) -> Iterator[tuple[machines.Gate, tuple[str, int]]]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    wanted = machines.Wanted(f"127.0.0.1:{port}", tokens(folder), {"b": ["host1"]}, wait)
    with machines.Gate(wanted, {"b": PART}) as opened:
        yield opened, ("127.0.0.1", port)


@contextlib.contextmanager
def greeted(address: tuple[str, int], token: bytes = b"0123456789abcdef") -> Iterator[link.Link]:
    with contextlib.closing(link.Link(socket.create_connection(address, timeout=20), token, False)) as made:
        yield made


HELLO = {"name": "b", "version": core.version()}


def test_a_machine_joins_once(tmp_path: Path) -> None:
    with gate(tmp_path) as (opened, address), greeted(address) as first, greeted(address) as second:
        first.send(HELLO)
        assert first.receive_json() == {"welcome": "b"}
        second.send(HELLO)
        assert "a machine b has joined already" in second.receive_json()["refused"]
        (member,) = opened.wait_for_all()
        assert member.link.datagram_keys == first.datagram_keys
        assert first.datagram_keys != second.datagram_keys, "each connection has its own keys"


def test_another_version_is_refused(tmp_path: Path) -> None:
    with gate(tmp_path, wait=0) as (opened, address), greeted(address) as other:
        other.send({"name": "b", "version": "0.0.1"})
        assert f"Firstlight 0.0.1, this one {core.version()}" in other.receive_json()["refused"]
        with pytest.raises(
            RunError, match=r"did not join within 0 s: .*refused: 127.0.0.1: that machine has"
        ):
            opened.wait_for_all()


def test_a_run_says_that_it_waits_for_another(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    other = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    monkeypatch.setattr(run, "CLAIM", f"\0firstlight-test-{os.getpid()}")
    monkeypatch.setattr(time, "sleep", lambda _: other.close())
    other.bind(run.CLAIM)
    with run.alone():
        assert capsys.readouterr().err == f"{run.OCCUPIED}\n"
    with run.alone():
        assert capsys.readouterr().err == ""


def test_a_machine_that_leaves_before_the_run_may_join_again(tmp_path: Path) -> None:
    with gate(tmp_path, wait=0) as (opened, address):
        with greeted(address) as other:
            other.send(HELLO)
            assert other.receive_json() == {"welcome": "b"}
        # The first one's end is there before the second one is let in.
        with pytest.raises(RunError, match="machine b did not join"):
            opened.wait_for_all()
        with greeted(address) as again:
            again.send(HELLO)
            assert again.receive_json() == {"welcome": "b"}
            assert [member.name for member in opened.wait_for_all()] == ["b"]


@pytest.mark.parametrize("bytes_", [b"", b"GET / HTTP/1.1\r\n\r\n" + b"x" * 100, link.GREETING, b"\0" * 4096])
def test_strangers_get_nothing(tmp_path: Path, bytes_: bytes) -> None:
    with gate(tmp_path) as (_, address), socket.create_connection(address, timeout=60) as stranger:
        # It may be turned away before it has said all.
        with contextlib.suppress(OSError):
            stranger.sendall(bytes_)
            stranger.shutdown(socket.SHUT_WR)
        heard = b""
        with contextlib.suppress(ConnectionResetError):
            while piece := stranger.recv(4096):
                heard += piece
        assert len(heard) <= len(link.GREETING) + link.NONCE


@contextlib.contextmanager
def pair() -> Iterator[tuple[link.Link, link.Link, socket.socket]]:
    """Both sides of a connection, and the machine's bare socket."""
    token, made = b"0123456789abcdef", []
    with socket.create_server(("127.0.0.1", 0)) as server:
        ours = socket.create_connection(server.getsockname(), timeout=20)
        theirs = server.accept()[0]
    with ours, theirs:
        thread = threading.Thread(target=lambda: made.append(link.Link(theirs, token, engine=True)))
        thread.start()
        client = link.Link(ours, token, engine=False)
        thread.join()
        yield client, made[0], ours


def test_frames_are_taken_once_and_in_their_order() -> None:
    with pair() as (client, engine, raw):
        client.send({"one": 1})
        assert engine.receive_json() == {"one": 1}
        data = b'{"two": 2}'
        again = len(data).to_bytes(4, "big") + data + client._code(client._send, 0, data)
        raw.sendall(again)
        with pytest.raises(link.LinkError, match="another token"):
            engine.receive_json()


def test_a_frame_that_is_too_long_is_not_read() -> None:
    with pair() as (_, engine, raw):
        raw.sendall((link.LONGEST + 1).to_bytes(4, "big"))
        with pytest.raises(link.LinkError, match="too long"):
            engine.receive()


def test_tokens_are_secret_and_long_enough(tmp_path: Path) -> None:
    file = tokens(tmp_path)
    assert link.token_of(file) == b"0123456789abcdef"
    file.chmod(0o644)
    with pytest.raises(RunError, match="others may read the token: chmod 600"):
        link.token_of(file)
    with pytest.raises(RunError, match=r"has 16 to 4096 bytes, this one 5"):
        link.token_of(tokens(tmp_path, "short"))
    with pytest.raises(RunError, match="cannot be read"):
        link.token_of(tmp_path / "none")


@pytest.mark.parametrize("text", ["10.0.0.1", ":7000", "a:0", "a:70000", "a:x", "a:²", "a:" + "9" * 5000, ""])
def test_addresses_have_a_port(text: str) -> None:
    with pytest.raises(PlanError, match="is no address"):
        link.address_of(text)


def test_addresses_of_both_kinds() -> None:
    assert link.address_of("10.0.0.1:7000") == ("10.0.0.1", 7000)
    assert link.address_of("[fd00::1]:7000") == ("fd00::1", 7000)


@pytest.mark.parametrize(
    "sizes",
    [
        None,
        [["../x", 1]],
        [["a/b", 1]],
        [["", 1]],
        [["..", 1]],
        [["x", -1]],
        [["x"]],
        [["x", 1 << 40]],
        [[1, 1]],
        [["x", 1]] * (outputs.MOST_FILES + 1),
    ],
)
def test_outputs_have_plain_names_and_bounded_sizes(sizes: object) -> None:
    with pytest.raises(link.LinkError):
        outputs.checked(sizes, 1)


def test_outputs_come_as_they_were_sent() -> None:
    files = {"a.out": b"x" * (outputs.PIECE + 5), "a.err": b""}
    with pair() as (client, engine, _):
        thread = threading.Thread(target=outputs.send, args=(client, files))
        thread.start()
        assert outputs.receive(engine, engine.receive_json()["done"], 1) == files
        thread.join()


# ---- Which hosts are where ----


def plan(tmp_path: Path, more: str) -> parts.HostsPlan:
    made: parts.HostsPlan = json.loads(core.Spec.read(experiment(tmp_path, more), {}).check().linux_plan())
    return made


def test_parts_have_their_hosts_and_programs(tmp_path: Path) -> None:
    whole = plan(tmp_path, PROGRAMS + program("here", "true", on="host2"))
    here, others = parts.divided(whole, {"b": ["host1"]})
    assert (here.hosts, others["b"].hosts) == ([0, 2], [1])
    assert [p["name"] for p in others["b"].plan(whole)["programs"]] == ["server", "there", "back"]
    assert [(p["name"], p["on"]) for p in here.plan(whole)["programs"]] == [("ping", 0), ("here", 1)]


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ({"b": ["host9"]}, "machine b: 'host9' is no host or rack that takes part"),
        ({"b": ["host1"], "c": ["host1"]}, "host1 is on machine b and on c"),
        ({"b": ["host2"]}, r"flow 0 has an end on host2, which is on machine b"),
    ],
)
def test_hosts_that_cannot_be_elsewhere(tmp_path: Path, wanted: dict[str, list[str]], said: str) -> None:
    flow = '[[flows]]\nfrom = "host0"\nto = "host2"\ncc = "cubic"\nsize = "2MB"\n'
    whole = plan(tmp_path, flow + program("there", "true", on="host1"))
    with pytest.raises(RunError, match=said):
        parts.divided(whole, wanted)


def test_sweeps_and_counted_writes_do_not_go_with_machines(tmp_path: Path) -> None:
    file = experiment(tmp_path, program("there", "true", on="host1"))
    (token := tmp_path / "token").write_text("0123456789abcdef" * 2)
    counted = SimpleNamespace(resolved={"control": {"demand": "adu"}})
    with machines.joined({"b": ["host1"]}, listen="192.0.2.1:7000", token=token):
        with pytest.raises(fl.PlanError, match=r"one run at a time: .* call firstlight\.run for each"):
            fl.sweep(file, axes={"seed": [1, 2]}, out=tmp_path / "s")
        with pytest.raises(RunError, match=r'demand = "adu".* not counted; use "voq"'):
            machines.gathered(cast(core.Experiment, counted), cast(parts.HostsPlan, {})).__enter__()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--listen", "10.0.0.1:7000"], "--listen is for machines that join"),
        (["--machine", "b=host1"], "--machine needs --listen ADDRESS:PORT and --token FILE"),
        (["--machine", "b", "--listen", "1:1", "--token", "x"], "--machine b: write NAME=HOST"),
        (["--machine", "b=host1", "--seeds", "2"], "--machine is for one run"),
        (["--machine", "b=host1", "--hosts", "linux"], "--machine is for hosts in dilated time"),
    ],
)
def test_options_that_do_not_fit(
    tmp_path: Path, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = experiment(tmp_path, program("there", "true", on="host1"))
    assert guarded(lambda: app(["run", str(file), *words], standalone_mode=False)) == 2
    assert said in capsys.readouterr().err
