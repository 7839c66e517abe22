"""Types of the Rust core. `firstlight.run` and its kin are the interface for users."""

from collections.abc import Callable
from os import PathLike
from typing import Any, TypeAlias, TypedDict

import numpy as np
from numpy.typing import NDArray

_Column: TypeAlias = NDArray[np.int64] | NDArray[np.float64] | NDArray[np.bool_] | list[str]

KernelCode: TypeAlias = tuple[str, str, str, list[str]]

class _Outcome(TypedDict):
    manifest: str
    """JSON text: spec with its defaults, seed, version, digest, conservation, counts, warnings."""
    tables: dict[str, dict[str, _Column]]
    """Columns by name, for each table by name."""

class SpecError(Exception):
    """The experiment is wrong: one line for each problem, with key, place and what would be right."""

class RunError(Exception):
    """A sound experiment did not come to a result."""

def version() -> str:
    """The version, with the commit it was built from when known: `0.1.0+gc61815c0a`."""

def schema() -> str:
    """The JSON Schema of an experiment."""

def dropping_tables() -> dict[str, str | None]:
    """The tables of queues that drop packets before a queue is full, each with the key that as `false` lets
    it drop only packets that cannot be marked."""

def read_input(file: str) -> bytes:
    """The content of a file that an experiment names: read once, until it changes."""

class Window:
    """The congestion window of a connection, in packets."""

    def __init__(self, cwnd: int = 10, ssthresh: int = 4294967295, floor: int = 2) -> None: ...
    cwnd: int
    """Packets that may be in flight; at least 1."""
    ssthresh: int
    """Slow start below, congestion avoidance from here on."""
    @property
    def floor(self) -> int:
        """No threshold is below this many packets."""

    @property
    def in_slow_start(self) -> bool:
        """True below the threshold."""

    def slow_start(self, acked: int) -> int:
        """Adds a packet for each packet acknowledged, up to the threshold; returns the rest."""

    def additive_increase(self, per: int, acked: int) -> None:
        """Adds one packet for each `per` packets acknowledged."""

class Ack:
    """What an ACK says to the sender."""

    def __init__(
        self,
        *,
        now_us: float = 0.0,
        delivered: int = 1,
        advanced: int = 1,
        rtt_us: float | None = None,
        srtt_us: float | None = None,
        ece: bool = False,
        reducing: bool = False,
        open: bool = True,
        una: int = 1,
        next: int = 1,
        mss: int = 1448,
    ) -> None: ...
    @property
    def now_us(self) -> float:
        """The host's clock in microseconds."""

    @property
    def delivered(self) -> int:
        """Packets that it newly reports as delivered, cumulatively or by SACK."""

    @property
    def advanced(self) -> int:
        """Packets that it acknowledges cumulatively."""

    @property
    def rtt_us(self) -> float | None:
        """Round-trip time of the newest packet acknowledged, in microseconds, if that was sent once."""

    @property
    def srtt_us(self) -> float | None:
        """Smoothed round-trip time in microseconds."""

    @property
    def ece(self) -> bool:
        """It carries ECN-Echo."""

    @property
    def reducing(self) -> bool:
        """A reduction is under way: the endpoint moves the window to the threshold."""

    @property
    def open(self) -> bool:
        """Nothing was lost or out of order before this ACK, and no reduction was under way."""

    @property
    def una(self) -> int:
        """Everything before this stream offset (bytes) is acknowledged."""

    @property
    def next(self) -> int:
        """The next stream offset to be sent, in bytes."""

    @property
    def mss(self) -> int:
        """Payload of a full packet, in bytes."""

def check_controller(controller: str | type, cases: int) -> str | None:
    """Checks a shared object or a class with so many random sequences of operations.

    Returns what is wrong, if anything. Raises SpecError when there is no controller.
    """

class Experiment:
    """An experiment that was read and checked: one reading serves inspection, identity and run."""

    def __init__(
        self,
        text: str,
        path: str,
        overrides: dict[str, Any],
        *,
        allow_sweep: bool = False,
        congestion_control: dict[str, type] | None = None,
    ) -> None:
        """Reads the text of a file; `path` is for messages and for the files that it names.

        Raises SpecError.
        """

    @property
    def name(self) -> str:
        """The name of the experiment, else of its file."""

    @property
    def resolved(self) -> str:
        """The experiment with all its defaults, as JSON."""

    @property
    def inputs(self) -> dict[str, str]:
        """The files that the experiment names: its name for each, and the path."""

    @property
    def kernel_code(self) -> tuple[list[KernelCode], list[KernelCode]]:
        """The user's own modules and patches of the kernel: of each the place of its key for messages, its
        name in the experiment, its path, and the files from which a module is built."""

    def inspect(self) -> str:
        """What would be built, as JSON: fabric, rates, week, bandwidth-delay products, flows, notes."""

    def linux_plan(self) -> str:
        """What the experiment's Linux hosts are to do: `plan.json` of a run's directory.

        Raises SpecError when it has none.
        """

    def run(
        self,
        progress: Callable[[float, int], object] | None = None,
        capture: str | PathLike[str] | None = None,
        timeline: tuple[str, set[int] | None, str | None, str | None] | None = None,
    ) -> _Outcome:
        """Runs the experiment, without the GIL.

        `progress` is called about every 50 ms with the part that is done, 0 to 1, and the transmissions begun
        so far; what it raises cancels the run. `capture` names a pcapng file to write, `timeline` a trace for
        Perfetto, its flows, its start and its end. Raises SpecError, RunError or KeyboardInterrupt.
        """

def goal_names() -> tuple[list[str], list[str], list[str]]:
    """Names of NAS parallel benchmarks, of their problem classes, and of communication patterns."""

def goal(name: str, ranks: int, size: int | None, iterations: int, compute_ns: int) -> str:
    """The schedule of an application (`cg.A`, `halo`) as a file in GOAL's text form has it.

    `size`: bytes of a pattern's messages. `compute_ns`: what ranks compute between exchanges.
    Raises SpecError.
    """

class _Schedule(TypedDict):
    days: list[tuple[int, int, NDArray[np.int64]]]
    """Of each day: the night before it (ps), its length (ps), the rack that each rack sends to (-1: idle)."""
    served: NDArray[np.uint64]
    """Bytes over circuits, from each rack (row) to each (column), if all demand is there at the start."""
    run_time_ns: int
    """What the scheduler took."""
    circuit_bps: int
    packet_bps: int

def schedulers() -> list[str]:
    """Names of the circuit schedulers."""

def schedule(
    demand: NDArray[np.uint64],
    scheduler: str,
    week: str,
    night: str,
    least_day: str,
    circuit_rate: str,
    packet_rate: str,
) -> _Schedule:
    """The week of one scheduler for `demand` in bytes, n x n, without the GIL.

    Raises SpecError; on Ctrl-C KeyboardInterrupt at once, and the computation ends by itself.
    """

def bytes_of(text: str) -> int:
    """An amount of data as users write it: `bytes_of("20MB")` is 20,000,000. Raises SpecError."""

def bps_of(text: str) -> int:
    """A rate in bits per second: `bps_of("10Gbps")` is 10,000,000,000. Raises SpecError."""

def ps_of(text: str) -> int:
    """A time in picoseconds: `ps_of("180us")` is 180,000,000. Raises SpecError."""

def measure_processor(file: str, other: int | None) -> dict[str, float]:
    """Nanoseconds that this machine takes for a system call, a read of the clock, a wake-up, and a copied
    byte, by their keys of `[linux.cpu]`; with `other`, also for an interrupt and for leaving the idle state.

    `file`: an empty file in memory. `other`: a processor; the calling thread is on one other. Raises OSError.
    """

def measure_messages() -> float:
    """Nanoseconds until a thread has received a byte over TCP and sent one, with both calls, while another
    thread does the same. Raises OSError.
    """
