"""The connection between the machines of a run: frames that are authenticated by a token both sides have.

Each side sends 32 random bytes. Keys are HMAC-SHA-256 of the token over these, one for each direction and
purpose, so that nothing of another connection is taken. A frame is its length, its content, and the HMAC of
its number and content. Frames are authenticated, not encrypted.
"""

import hmac
import json
import os
import secrets
import select
import socket
import stat
import struct
import time
from pathlib import Path
from typing import Any

from firstlight.errors import PlanError, RunError
from firstlight.numbers import whole

GREETING = b"firstlight-join-1"
NONCE = 32
CODE = 32
LONGEST = 1 << 22
"""Bytes of a frame's content at most."""
LEAST_TOKEN = 16
MOST_TOKEN = 4096
ANSWER_S = 20.0
"""How long the other side may take for a frame that is due."""


class LinkError(RunError):
    """The other side is gone, or is not who it should be."""


class Gone(LinkError):
    """The other side has closed the connection, or is silent."""


def token_of(file: Path) -> bytes:
    """The token in ``file``, which no other user may read."""
    try:
        with file.open("rb") as opened:
            mode = os.fstat(opened.fileno()).st_mode
            token = opened.read(MOST_TOKEN + 1).strip()
    except OSError as e:
        raise RunError(f"{file}: the token cannot be read: {e.strerror}") from None
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise RunError(f"{file}: others may read the token: chmod 600 {file}")
    if not LEAST_TOKEN <= len(token) <= MOST_TOKEN:
        raise RunError(
            f"{file}: a token has {LEAST_TOKEN} to {MOST_TOKEN} bytes, this one {len(token)}: make one by "
            f"head -c 32 /dev/urandom | base64 > {file}"
        )
    return token


def address_of(text: str) -> tuple[str, int]:
    """``HOST:PORT`` or ``[IPv6]:PORT`` as both parts."""
    host, colon, port = text.rpartition(":")
    number = whole(port) or 0
    if not colon or not host or not 0 < number < 1 << 16:
        raise PlanError(f"'{text}' is no address: write one as 10.0.0.1:7000 or [fd00::1]:7000")
    return host.removeprefix("[").removesuffix("]"), number


class Link:
    """One side of a connection after both have greeted each other."""

    def __init__(self, connection: socket.socket, token: bytes, engine: bool) -> None:
        self._socket = connection
        connection.settimeout(ANSWER_S)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in ((socket.TCP_KEEPIDLE, 5), (socket.TCP_KEEPINTVL, 5), (socket.TCP_KEEPCNT, 3)):
            connection.setsockopt(socket.IPPROTO_TCP, option, value)
        own = secrets.token_bytes(NONCE)
        self._put(GREETING + own)
        theirs = self._get(len(GREETING) + NONCE, time.monotonic() + ANSWER_S)
        if not theirs.startswith(GREETING):
            raise LinkError("the program at this address is not a Firstlight of this version")
        theirs = theirs[len(GREETING) :]
        nonces = theirs + own if engine else own + theirs

        def key(purpose: str) -> bytes:
            return hmac.digest(token, purpose.encode() + b"\0" + nonces, "sha256")

        ways = [key("frames to the engine"), key("frames from the engine")]
        self._take, self._send = ways if engine else ways[::-1]
        self.datagram_keys = [list(key("datagrams from the engine")), list(key("datagrams to the engine"))]
        """Keys of datagrams from the engine, and to it."""
        self._sent = self._taken = 0

    @property
    def peer(self) -> tuple[str, int]:
        """The other side's address."""
        host, port = self._socket.getpeername()[:2]
        return str(host), int(port)

    def send(self, content: Any) -> None:
        """Send what JSON can say, or bytes."""
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        self._put(struct.pack(">I", len(data)) + data + self._code(self._send, self._sent, data))
        self._sent += 1

    def receive(self, patience: float | None = ANSWER_S) -> bytes:
        """The next frame's bytes; raises :class:`Gone` when none has begun within ``patience`` seconds."""
        ready, _, _ = select.select([self._socket], [], [], patience)
        if not ready:
            raise Gone(f"nothing came for {patience:g} s")
        deadline = time.monotonic() + ANSWER_S
        (length,) = struct.unpack(">I", self._get(4, deadline))
        if length > LONGEST:
            raise LinkError("a frame is too long: the other side is of another version")
        data, code = self._get(length, deadline), self._get(CODE, deadline)
        if not hmac.compare_digest(code, self._code(self._take, self._taken, data)):
            raise LinkError("the other side has another token")
        self._taken += 1
        return data

    def receive_json(self, patience: float | None = ANSWER_S) -> dict[str, Any]:
        """The next frame, an object of JSON."""
        try:
            content = json.loads(self.receive(patience))
        except ValueError:
            content = None
        if not isinstance(content, dict):
            raise LinkError("a message is not as expected: the other side is of another version")
        return content

    def has_news(self, within: float = 0.0) -> bool:
        """Whether a frame, or the connection's end, is there."""
        return bool(select.select([self._socket], [], [], within)[0])

    def close(self) -> None:
        """End the connection."""
        self._socket.close()

    @staticmethod
    def _code(key: bytes, number: int, data: bytes) -> bytes:
        return hmac.digest(key, struct.pack(">Q", number) + data, "sha256")

    def _put(self, data: bytes) -> None:
        try:
            self._socket.sendall(data)
        except OSError as e:
            raise Gone(e.strerror or "it does not take what is sent") from None

    def _get(self, count: int, deadline: float) -> bytes:
        parts: list[bytes] = []
        while count:
            self._socket.settimeout(max(deadline - time.monotonic(), 0.001))
            try:
                part = self._socket.recv(min(count, 1 << 16))
            except OSError as e:
                raise Gone(e.strerror or "it is silent") from None
            if not part:
                raise Gone("it closed the connection")
            parts.append(part)
            count -= len(part)
        self._socket.settimeout(ANSWER_S)
        return b"".join(parts)
