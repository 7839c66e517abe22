"""Table 1 of Etalon on dilated hosts: nights, days and rates, as tcpdump on the receiving hosts saw them.

A capture of the fabric has the moments that the fabric has set. Here each receiving host runs tcpdump, whose
times are those at which the machine's kernel got the packets, by the machine's clock. Needs root, tcpdump and
the machine for itself. Prints what a run has found, and what the fabric's capture says; OUT is a new
directory, or such a run's:
.venv/bin/python benches/table1_dilated.py OUT
"""

import struct
import sys
from itertools import pairwise
from pathlib import Path

import firstlight as fl
import numpy as np
import numpy.typing as npt
from firstlight.claims.measures import captured

EXPERIMENT = Path(__file__).parents[1] / "experiments" / "etalon" / "validation" / "experiment.toml"
SCALE = 20
TCPDUMP = """
[[program]]
on = "rack1"
run = "exec tcpdump -i eth0 -n -s 64 -B 16384 -w - --time-stamp-precision=nano 'src net 10.0.0.0/24'"
server = true
"""
RECORD = struct.Struct("<IIII")
"""Seconds, nanoseconds, length kept, length on the wire."""
FULL, WARMUP_US = 9000, 201_400
BORDER_US = 5
"""Between the gaps of the circuit, 0.9 us, and those of the packet network, 7.2 us; some packets are late."""
LATER_US = 13.7
"""The additional delay of the circuit's path over the packet network's."""
Times = npt.NDArray[np.float64]


def seen(folder: Path) -> Times:
    """When full packets arrived, in us of the network since the first of them."""
    times = []
    for file in folder.glob("*.out"):
        content, at = file.read_bytes(), 24
        while at + RECORD.size <= len(content):
            seconds, ns, kept, wire = RECORD.unpack_from(content, at)
            at += RECORD.size + kept
            if wire == FULL:
                times.append(seconds * 10**9 + ns)
    return np.array(sorted(t - min(times) for t in times)) / (1e3 * SCALE)


def report(times: Times) -> str:
    """Medians over the days after the warm-up; a day is 100 packets or more at the circuit's gaps.

    The packet network's first packets after a day overtake the circuit's last ones and count as of the day,
    which makes it 1.6 us longer.
    """
    times = times[times >= WARMUP_US]
    gaps = np.diff(times)
    ends = np.flatnonzero(gaps > BORDER_US)
    days = [slice(a + 1, b) for a, b in pairwise(ends) if b - a > 100]
    gap = np.median(np.concatenate([gaps[day] for day in days]))
    day = np.median([gaps[day].sum() for day in days]) + gap
    night = np.median([gaps[day.start - 1] for day in days]) - LATER_US
    slow = np.median(gaps[ends])
    rates = f"packet network {8e-3 * FULL / slow:.2f} Gb/s, circuit {8e-3 * FULL / gap:.2f} Gb/s"
    return f"{len(days)} days: night {night:.2f} us, day {day:.2f} us, {rates}"


def main() -> None:
    """Run it, unless OUT has a result, and print what both captures say."""
    out = Path(sys.argv[1])
    if not out.exists():
        file = out.with_suffix(".toml")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(EXPERIMENT.read_text() + TCPDUMP)
        fl.run(file, {"hosts.kind": "dilated", "time_scale": SCALE}, out=out)
    result = fl.load(out)
    assert result.capture is not None
    print("tcpdump:", report(seen(out / "programs")))
    print("fabric:", report(captured.read(result.capture, FULL)))
    print("invalid:", "; ".join(result.invalid) if result.invalid else "no")


main()
