"""Times and rates of a hybrid fabric's measured pair from a packet capture at its receivers: what Table 1 of
Etalon (NSDI 2020, section 4.3) measured on its testbed.

Nothing here asks the engine what it did. Data packets of one size arrive back to back: from the circuit at
small gaps, from the packet network at larger ones. A day is a train of the former, and the night before it is
the silence before the train, less what the circuit's path takes longer than the packet network's. The pair
must always have something to send (:doc:`experiments/etalon/validation`).

The capture is pcapng with IPv4 packets and times in nanoseconds of the hosts' clock, as the engine writes it
(draft-ietf-opsawg-pcapng, section 4.3).
"""

import struct
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from firstlight.claims.measures.units import bits_per_second, in_bytes, in_us
from firstlight.runs.result import Result

ENHANCED_PACKET = 6
HEADER = struct.Struct("<IIIIIII")
"""Type and length of the block, interface, both halves of the time, length kept, length on the wire."""
Times = npt.NDArray[np.float64]


def captured_day_us(result: Result) -> float:
    """Mean length of a day: from a train's first packet to the end of its last (us)."""
    return float(np.mean([train[-1] - train[0] + _gap(train) for train in _days(result)]))


def captured_night_us(result: Result) -> float:
    """Mean length of the nights before the pair's days (us)."""
    times, spec = _arrivals(result), result.manifest["spec"]
    by_circuit = in_us(spec["circuit"]["delay"]) + _sent_us(result, "circuit")
    by_packet = 2 * in_us(spec["packet"]["delay"]) + _sent_us(result, "packet")
    silence = [train[0] - times[np.searchsorted(times, train[0]) - 1] for train in _days(result)]
    return float(np.mean(silence)) - by_circuit + by_packet


def captured_circuit_rate_gbps(result: Result) -> float:
    """Rate of the circuit: of packets within days (Gb/s)."""
    return _bits(result) / (1e3 * float(np.mean([_gap(train) for train in _days(result)])))


def captured_packet_rate_gbps(result: Result) -> float:
    """Rate of the packet network: of packets back to back outside days (Gb/s)."""
    gaps = np.diff(_arrivals(result))
    return _bits(result) / (1e3 * float(np.median(gaps[gaps > _border(result)])))


def _bits(result: Result) -> float:
    """A full packet."""
    return 8.0 * in_bytes(result.manifest["spec"]["hosts"]["mtu"])


def _sent_us(result: Result, network: str) -> float:
    """How long a full packet takes to send (us)."""
    return 1e6 * _bits(result) / bits_per_second(result.manifest["spec"][network]["rate"])


def _border(result: Result) -> float:
    """The gap between those of both networks, by their geometric mean (us)."""
    return float(np.sqrt(_sent_us(result, "packet") * _sent_us(result, "circuit")))


def _gap(train: Times) -> float:
    return float((train[-1] - train[0]) / (len(train) - 1))


def _days(result: Result) -> list[Times]:
    """The arrivals of each whole day. The packet network's first packets after a day overtake the circuit's
    last ones; they stand out, because they are not a whole number of gaps after the train's first."""
    times = _arrivals(result)
    fast = np.diff(times) < _border(result)
    trains = np.split(times, np.flatnonzero(~fast) + 1)
    return [_regular(train) for train in trains if len(train) > 2][1:-1]


def _regular(train: Times) -> Times:
    gaps = (train - train[0]) / float(np.median(np.diff(train)))
    regular: Times = train[np.abs(gaps - np.rint(gaps)) < 0.1]
    return regular


def _arrivals(result: Result) -> Times:
    """When full data packets of the pair arrived at the receivers, after the warm-up (us of the network)."""
    spec = result.manifest["spec"]
    assert result.capture is not None, "the experiment has no capture: measure.capture = true"
    times = read(result.capture, int(_bits(result)) // 8)
    return times[times >= in_us(spec["warmup"])]


@lru_cache(maxsize=2)
def read(file: Path, size: int) -> Times:
    """The times of IP packets of ``size`` bytes in a capture, in us."""
    content, at, found = file.read_bytes(), 0, []
    while at + HEADER.size <= len(content):
        kind, length, _, high, low, _, wire = HEADER.unpack_from(content, at)
        if kind == ENHANCED_PACKET and wire == size:
            found.append((high << 32 | low) / 1e3)
        at += length
    return np.sort(np.array(found))


MEASURES: dict[str, Callable[[Result], float]] = {
    f.__name__: f
    for f in (captured_night_us, captured_day_us, captured_packet_rate_gbps, captured_circuit_rate_gbps)
}
