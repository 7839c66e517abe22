"""What an ACK costs a controller of one's own: NewReno built in, as a shared object and as a Python class.

``python benches/own_congestion_control.py``: user time of a run in a process of its own, the median of five.
"""

import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

EXPERIMENT = """
duration = "1s"
[fabric]
kind = "dumbbell"
left = 2
right = 2
[hosts]
rate = "10Gbps"
delay = "20us"
mtu = "1500B"
[links]
rate = "5Gbps"
[switch]
queue = 30
[[flows]]
from = "host0"
to = "host2"
"""
RUN = """
import resource, sys
import firstlight as fl
class Mine(fl.CongestionControl):
    def grow(self, window, ack):
        left = window.slow_start(ack.delivered) if window.in_slow_start else ack.delivered
        if left > 0:
            window.additive_increase(window.cwnd, left)
    def ssthresh(self, window, marked):
        return max(window.cwnd // 2, window.floor)
fl.run(sys.argv[1], {"duration": "1ms"})
before = resource.getrusage(resource.RUSAGE_SELF).ru_utime
result = fl.run(sys.argv[1], {"tcp.cc": sys.argv[2]}, congestion_control={"mine": Mine})
used = resource.getrusage(resource.RUSAGE_SELF).ru_utime - before
print(used, result.manifest["digest"])
"""
COUNT = """
class Counting(Mine):
    acks = 0
    def on_ack(self, window, ack):
        Counting.acks += 1
result = fl.run(sys.argv[1], {"tcp.cc": "mine"}, congestion_control={"mine": Counting})
print(Counting.acks, result.manifest["digest"])
"""
RENO = ("(window.cwnd * 3 / 4)", "(window.cwnd / 2)")


def printed(script: str, experiment: Path, cc: str) -> list[str]:
    """The words that a process of its own prints."""
    words = [sys.executable, "-c", script, str(experiment), cc]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.split()


def main() -> None:
    """Print a row for each way to run NewReno."""
    with tempfile.TemporaryDirectory() as folder:
        experiment = Path(folder) / "experiment.toml"
        experiment.write_text(EXPERIMENT)
        subprocess.run(
            [sys.executable, "-m", "firstlight", "cc", "new", "reno"], cwd=folder, check=True, stdout=-3
        )
        source = Path(folder) / "reno/src/lib.rs"
        source.write_text(source.read_text().replace(*RENO))
        subprocess.run(["cargo", "build", "--quiet", "--release"], cwd=Path(folder) / "reno", check=True)
        ways = {
            "built in": "newreno",
            "shared object": f"{folder}/reno/target/release/libreno.so",
            "Python class": "mine",
        }
        base = None
        digests: set[str] = set()
        acks, digest = printed(RUN + COUNT, experiment, "mine")[-2:]
        print("| controller | user time (s) | ACKs | more than built in, per ACK (ns) |")
        print("|---|--:|--:|--:|")
        for way, cc in ways.items():
            lines = [printed(RUN, experiment, cc) for _ in range(5)]
            used = statistics.median(float(line[0]) for line in lines)
            digests.add(lines[0][1])
            base = used if base is None else base
            print(f"| {way} | {used:.3f} | {acks} | {(used - base) / int(acks) * 1e9:.0f} |")
        assert digests == {digest}, "the three are the same controller"


if __name__ == "__main__":
    main()
