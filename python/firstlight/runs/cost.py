"""Estimates the cost of a run from its first seconds, whose results are discarded."""

import time
from dataclasses import dataclass
from pathlib import Path

from firstlight import core
from firstlight.core import Overrides, Spec
from firstlight.errors import PlanError
from firstlight.linux import installed

BUDGET = 2.0
"""Seconds that an estimate may take."""


@dataclass(frozen=True)
class Cost:
    """The time and memory that a run of an experiment takes on this machine."""

    packet_hops: int
    """Transmissions begun, over all links."""
    seconds: float
    """From the start of the engine to the result."""
    memory: int
    """Bytes of memory beside the interpreter's."""
    part: float
    """The part of the run from which the rest was estimated, by time, or by received bytes where flows and
    messages end the run; 1.0: all was run."""


@dataclass(frozen=True)
class _Sample:
    seconds: float
    part: float
    packet_hops: int
    memory: int


class _Enough(Exception):
    """Ends a run that has lasted as long as an estimate may."""


def cost(path: str | Path, overrides: Overrides | None = None, *, budget: float = BUDGET) -> Cost:
    """What a run of the experiment in ``path`` costs. It runs for up to ``budget`` seconds; a run that is not
    complete by then is taken to go on as in the second half of that time. Of a file with ``[sweep]`` it is
    the base point's cost. Raises :class:`SpecError`, and :class:`PlanError` for hosts that are not
    simulated."""
    experiment = Spec.read(path, overrides, sweep=True).check()
    if installed.has_linux_hosts(experiment.resolved):
        raise PlanError("the cost of Linux hosts is not estimated: a run shows the time that is left")
    watch = Watch()

    def until_enough(part: float, packet_hops: int) -> None:
        watch.on_part(part, packet_hops)
        if watch.seconds > budget and part < 1:
            raise _Enough

    try:
        manifest = core.simulate(experiment, watched=until_enough).manifest
    except _Enough:
        return watch.estimate()
    watch.on_part(1.0, manifest.get("counts", {}).get("packet_hops", 0))
    return watch.estimate()


class Watch:
    """Notes how a run goes, from which the whole run's cost is estimated."""

    def __init__(self) -> None:
        self._before, self._began = _resident(), time.monotonic()
        self._samples: list[_Sample] = []

    @property
    def seconds(self) -> float:
        """Since the start."""
        return time.monotonic() - self._began

    def on_part(self, part: float, packet_hops: int) -> None:
        """The run has come so far."""
        self._samples.append(_Sample(self.seconds, part, packet_hops, max(_resident() - self._before, 0)))

    def estimate(self) -> Cost:
        """The cost of the whole run, if the rest goes on as the second half of the time so far."""
        last = self._samples[-1]
        if last.part < 1:
            return _extrapolated(self._samples)
        return Cost(last.packet_hops, last.seconds, max(s.memory for s in self._samples), 1.0)


def _extrapolated(samples: list[_Sample]) -> Cost:
    """The whole run's cost, if it goes on as between the middle sample and the last one."""
    last = samples[-1]
    start = _Sample(0.0, 0.0, 0, 0)
    middle = next((s for s in samples if s.seconds >= last.seconds / 2 and s.part < last.part), start)
    rest = (1 - last.part) / (last.part - middle.part)
    hops = last.packet_hops + rest * (last.packet_hops - middle.packet_hops)
    seconds = last.seconds + rest * (last.seconds - middle.seconds)
    memory = last.memory + rest * max(last.memory - middle.memory, 0)
    return Cost(round(hops), seconds, round(memory), last.part)


def _resident() -> int:
    """Bytes of this process that are in memory."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS:"))
