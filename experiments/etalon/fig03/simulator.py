"""Fig. 3 with what its simulator may have had: packets of 1500 B, windows that grow by the number of ACKs,
and older loss recoveries. Prints completion time (s), timeouts and lost packets (thousands) of each."""

import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import firstlight as fl

EXPERIMENT = Path(__file__).with_name("experiment.toml")
POINTS = [  # flows, queue in packets of 9000 B, phase in us
    *[(1, 8, phase) for phase in (64, 1024, 4096, 11585, 16384)],
    *[(5, 8, phase) for phase in (4096, 11585)],
    *[(10, 8, phase) for phase in (64, 1024, 4096, 11585)],
    (10, 16, 4096),
]
PACKET_BY_PACKET = {
    "tcp.bursts": False,
    "tcp.small_queues": False,
    "tcp.frto": False,
    "tcp.tail_loss_probe": False,
    "tcp.compress_sacks": False,
}
AT_ONCE = {**PACKET_BY_PACKET, "tcp.prr": False}
VARIANTS: dict[str, dict[str, Any]] = {
    "counts ACKs": {**PACKET_BY_PACKET, "tcp.cc": "by-ack"},
    "no PRR": {**AT_ONCE, "tcp.cc": "by-ack"},
    "no PRR, RTO 10 ms": {**AT_ONCE, "tcp.cc": "by-ack", "tcp.rto_min": "10ms"},
    "no SACK": {**AT_ONCE, "tcp.cc": "by-ack", "tcp.sack": False},
}


class ByAck(fl.CongestionControl):
    """NewReno as RFC 5681 has it without byte counting: an ACK counts once, whatever it acknowledges."""

    acks = 0

    def grow(self, window: fl.Window, ack: fl.Ack) -> None:
        if window.cwnd < window.ssthresh:
            window.cwnd += 1
            return
        self.acks += 1
        if self.acks >= window.cwnd:
            self.acks = 0
            window.cwnd += 1


def cell(flows: int, queue: int, phase: int, variant: str) -> str:
    """Completion time in seconds, timeouts, and thousands of lost packets."""
    point = {"flows.0.count": flows, "voq.small": 6 * queue, "schedule.day": f"{phase}us"}
    settings = {"hosts.mtu": "1500B", **point, **VARIANTS[variant]}
    found = fl.run(EXPERIMENT, settings, congestion_control={"by-ack": ByAck}).summary
    time = f"{found['fct_last_s']:.1f}" if "fct_last_s" in found else "over 60"
    return f"{time}, {found['timeouts']:.0f}, {found['dropped_packets'] / 1e3:.0f}"


if __name__ == "__main__":
    chosen = sys.argv[1:] or list(VARIANTS)
    jobs = [(*point, variant) for point in POINTS for variant in chosen]
    with ProcessPoolExecutor() as pool:
        cells = list(pool.map(cell, *zip(*jobs, strict=True)))
    print("| flows, queue, phase (us) |", " | ".join(chosen), "|")
    for i, point in enumerate(POINTS):
        print("|", ", ".join(map(str, point)), "|", " | ".join(cells[i * len(chosen) :][: len(chosen)]), "|")
