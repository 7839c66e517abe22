"""A congestion control of one's own in Python, for simulated hosts: what a class may have.

NewReno (RFC 5681) does what a class leaves out, so that the smallest one has one method:

>>> import firstlight as fl
>>> class Gentle(fl.CongestionControl):
...     def ssthresh(self, window, marked):
...         return max(window.cwnd * 3 // 4, window.floor)
>>> fl.run("experiment.toml", {"tcp.cc": "gentle"}, congestion_control={"gentle": Gentle})  # doctest: +SKIP
"""

import hashlib
import inspect
from typing import TYPE_CHECKING, Literal

from firstlight._core import Ack as Ack
from firstlight._core import Window as Window


class CongestionControl:
    """What a class may have; each connection has an object of its own, made without arguments.

    Every method gets the window, in packets. The methods that return nothing may change it; it stays at least
    one. A run repeats if the object draws no random numbers without a seed, reads no clock, and shares
    nothing with other connections.
    """

    ecn: Literal["classic", "precise"] = "classic"
    """``precise``: always negotiate ECN and echo each mark, as DCTCP does (RFC 8257)."""

    if TYPE_CHECKING:

        def on_established(self, window: Window, srtt_us: float | None) -> None:
            """The handshake is complete, which took this round-trip time in microseconds."""

        def on_ack(self, window: Window, ack: Ack) -> None:
            """Every ACK, in every state, before the window may be raised."""

        def grow(self, window: Window, ack: Ack) -> None:
            """Raise the window for ``ack.delivered`` packets: it limits the sender."""

        def ssthresh(self, window: Window, marked: bool) -> int:
            """There was congestion, a loss, or a mark if ``marked``: the window to fall to, in packets."""
            return window.floor

        def on_recovery(self, window: Window) -> None:
            """Losses are to be repaired by a recovery; ``ssthresh`` was called before."""

        def on_reduced(self, window: Window) -> None:
            """A reduction is over, and the window is the threshold."""

        def on_timeout(self, window: Window) -> None:
            """The retransmission timer expired; ``ssthresh`` was called before."""

        def undo(self, window: Window, prior_cwnd: int) -> int:
            """The reduction was spurious: the window to go back to, given the one before it, in packets."""
            return prior_cwnd

        def backs_off(self, window: Window) -> bool:
            """Whether to reduce the window as after a mark; called after each ACK."""
            return False

        def pace(self, window: Window, size: int) -> float:
            """A packet of ``size`` bytes leaves now: how long the next one waits, in microseconds."""
            return 0.0


def source_hash(controller: type) -> str:
    """A hash of a class's source, 32 hex digits, or ``unknown`` where Python has no source."""
    try:
        return hashlib.sha256(inspect.getsource(controller).encode()).hexdigest()[:32]
    except (OSError, TypeError):
        return "unknown"
