"""Machines that join a run: waiting for them, the connection to each, and the files that they return."""

import contextlib
import contextvars
import json
import queue
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from firstlight import core
from firstlight.dilated import outputs, parts
from firstlight.dilated.link import Gone, Link, LinkError, address_of, token_of
from firstlight.errors import PlanError, RunError
from firstlight.linux.directory import PROGRAMS, RunDirectory

REPORT = "machines.json"
PART = "part.json"
WAIT_S = 60.0
"""How long machines are waited for by default."""
LOOK_S = 0.2
GREETING_AT_ONCE = 16
"""Connections that may be about to show their token; more are closed at once."""
MOST_MACHINES = 100
RESULT_S = 60.0
"""How long a machine may take to send what its programs wrote."""


@dataclass(frozen=True)
class Wanted:
    """Machines that a run waits for."""

    listen: str
    token: Path
    hosts: dict[str, list[str]]
    """Names of machines, and for each the names of hosts or racks that it has."""
    wait: float = WAIT_S


_wanted: contextvars.ContextVar[Wanted | None] = contextvars.ContextVar("machines", default=None)


@contextlib.contextmanager
def joined(
    hosts: dict[str, list[str]], *, listen: str, token: str | Path, wait: float = WAIT_S
) -> Iterator[None]:
    """Runs on hosts in dilated time that begin inside wait for other machines (``firstlight join``).

    ``hosts`` gives for each machine's name the hosts or racks that are on it; all others are on this one.
    ``listen`` is the address for their packets, ``token`` the file with the token that they must have."""
    address_of(listen)
    if not hosts or len(hosts) > MOST_MACHINES:
        raise RunError(f"{len(hosts)} machines are waited for: name 1 to {MOST_MACHINES}")
    mark = _wanted.set(Wanted(listen, Path(token), hosts, wait))
    try:
        yield
    finally:
        _wanted.reset(mark)


def check_one_run() -> None:
    """Raise :class:`PlanError` where machines are waited for: they join one run, not the points of many."""
    if _wanted.get() is not None:
        raise PlanError(
            "machines that join take part in one run at a time: inside joined(), call firstlight.run for each"
        )


@dataclass
class Member:
    """A machine that has joined."""

    name: str
    link: Link
    part: parts.MachinePart
    files: dict[str, bytes] | None = None

    def look(self) -> None:
        """Take what has come; raise when the machine has left or failed."""
        if self.files is not None or not self.link.has_news():
            return
        try:
            said = self.link.receive_json()
            if "failed" in said:
                raise RunError(f"on machine {self.name}: {str(said['failed'])[:4000]}")
            self.files = outputs.receive(self.link, said.get("done"), len(self.part.programs))
        except Gone as e:
            raise RunError(f"machine {self.name} left in the middle of the run: {e}") from None
        except LinkError as e:
            raise RunError(f"machine {self.name}: {e}") from None


@dataclass
class Machines:
    """The machines of a run; none in most runs."""

    plan: parts.HostsPlan
    here: parts.MachinePart | None = None
    listen: str = ""
    members: list[Member] = field(default_factory=list)

    def for_engine(self) -> dict[str, Any] | None:
        """The machines' settings for the engine."""
        if self.here is None:
            return None
        return {
            "listen": self.listen,
            "machines": [
                {
                    "name": member.name,
                    "keys": member.link.datagram_keys,
                    "hosts": member.part.hosts,
                    "programs": member.part.programs,
                }
                for member in self.members
            ],
        }

    def prepare(self, run: RunDirectory) -> None:
        """Write this machine's part of the plan."""
        if self.here is not None:
            run.write(PART, json.dumps(self.here.plan(self.plan)))

    def begin(self, time_scale: int) -> None:
        """Send each machine its part."""
        for number, member in enumerate(self.members):
            try:
                member.link.send({"run": {"machine": number, "factor": time_scale}})
                member.link.send(member.part.plan(self.plan))
            except Gone as e:
                raise RunError(f"machine {member.name} left before the run: {e}") from None

    def watched(self, progress: Callable[[float], None] | None) -> Callable[[float], None] | None:
        """``progress``, which looks after the machines too."""
        if self.here is None:
            return progress

        def look(fraction: float) -> None:
            for member in self.members:
                member.look()
            if progress:
                progress(fraction)

        return look

    def collect(self, run: RunDirectory) -> None:
        """Wait for the files that programs on the machines wrote, and store them beside those of programs
        here."""
        deadline = time.monotonic() + RESULT_S
        for member in self.members:
            while member.files is None:
                member.link.has_news(LOOK_S)
                member.look()
                if time.monotonic() > deadline:
                    raise RunError(f"machine {member.name} did not send its results within {RESULT_S:g} s")
            for name, content in member.files.items():
                with contextlib.suppress(FileExistsError), (run.path / PROGRAMS / name).open("xb") as file:
                    file.write(content)

    def add_to(self, output: core.Output, run: RunDirectory) -> core.Output:
        """``output`` with the machines' measurements."""
        if self.here is None:
            return output
        hosts = {**output.manifest["hosts"], "machines": run.json(REPORT)}
        return replace(output, manifest={**output.manifest, "hosts": hosts})


@contextlib.contextmanager
def gathered(experiment: core.Experiment, plan: parts.HostsPlan) -> Iterator[Machines]:
    """The machines that the run waits for, when all have joined."""
    wanted = _wanted.get()
    if wanted is None:
        yield Machines(plan)
        return
    if (experiment.resolved.get("control") or {}).get("demand") == "adu":
        raise RunError(
            'control.demand = "adu": what programs of other machines write is not counted; use "voq"'
        )
    here, others = parts.divided(plan, wanted.hosts)
    with Gate(wanted, others) as gate:
        members = gate.wait_for_all()
        try:
            yield Machines(plan, here, gate.listen, members)
        finally:
            for member in members:
                member.link.close()


class Gate:
    """Waits at an address for machines, and lets in those that are expected and have the token."""

    def __init__(self, wanted: Wanted, expected: dict[str, parts.MachinePart]) -> None:
        self._wanted = wanted
        self._token = token_of(wanted.token)
        self._expected = expected
        self._members: dict[str, Member] = {}
        self._refused: list[str] = []
        self._lock = threading.Lock()
        self._greeting = threading.Semaphore(GREETING_AT_ONCE)
        self._came: queue.Queue[None] = queue.Queue()
        host, port = address_of(wanted.listen)
        try:
            family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
            self._socket = socket.create_server((host, port), family=family)
        except OSError as e:
            raise RunError(f"cannot listen at {wanted.listen} for machines: {e.strerror or e}") from None
        bound, number = self._socket.getsockname()[:2]
        self.listen = f"[{bound}]:{number}" if ":" in bound else f"{bound}:{number}"

    def __enter__(self) -> "Gate":
        threading.Thread(target=self._open, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        with self._lock:
            for member in self._members.values():
                member.link.close()

    def wait_for_all(self) -> list[Member]:
        """The machines in the order in which they were named."""
        deadline = time.monotonic() + self._wanted.wait
        while True:
            with self._lock:
                for name, member in list(self._members.items()):
                    if member.link.has_news():  # it has nothing to say yet: it has left
                        member.link.close()
                        del self._members[name]
                lacking = [name for name in self._expected if name not in self._members]
                if not lacking:
                    return [self._members[name] for name in self._expected]
            if time.monotonic() > deadline:
                raise RunError(self._missing(lacking))
            with contextlib.suppress(queue.Empty):
                self._came.get(timeout=LOOK_S)

    def _missing(self, lacking: list[str]) -> str:
        who = ("machine " if len(lacking) == 1 else "machines ") + ", ".join(lacking)
        tried = f"; refused: {'; '.join(self._refused[-3:])}" if self._refused else ""
        return (
            f"{who} did not join within {self._wanted.wait:g} s: run firstlight join {self.listen} "
            f"--name {lacking[0]} --token FILE there{tried}"
        )

    def _open(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            if not self._greeting.acquire(blocking=False):
                connection.close()
                continue
            threading.Thread(target=self._greet, args=(connection,), daemon=True).start()

    def _greet(self, connection: socket.socket) -> None:
        try:
            origin = str(connection.getpeername()[0])
            try:
                link = Link(connection, self._token, engine=True)
                hello = link.receive_json()
                if reason := self._let_in(link, hello):
                    self._refused.append(f"{origin}: {reason}")
                    link.send({"refused": reason})
                    link.close()
            except LinkError as e:
                self._refused.append(f"{origin}: {e}")
                connection.close()
        except OSError:
            connection.close()
        finally:
            self._greeting.release()
            self._came.put(None)

    def _let_in(self, link: Link, hello: dict[str, Any]) -> str | None:
        name, version = str(hello.get("name"))[:200], str(hello.get("version"))[:200]
        if version != core.version():
            return f"that machine has Firstlight {version}, this one {core.version()}: install one on both"
        with self._lock:
            if name not in self._expected:
                known = ", ".join(self._expected)
                return f"no machine {name} is waited for, but {known}: --name says which it is"
            if name in self._members:
                return f"a machine {name} has joined already: --name gives this one another name"
            link.send({"welcome": name})
            self._members[name] = Member(name, link, self._expected[name])
        return None
