"""Runs ``--cases`` invented experiments of many flows on both kinds of hosts, each with five seeds.

Compares the means of completion times, goodput, its share among flows, drops, marks, timeouts, and jobs. A
mean that lies within the 95 % interval of Linux's own mean does not diverge. Prints the spread of divergences
and the worst cases; ``--out`` gets each case's file and all numbers.
"""

import argparse
import json
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from math import exp, log
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import firstlight
import numpy as np
from firstlight.numbers import half_interval

SEEDS = 5
KINDS = ("simulated", "linux")
CONTROLLERS = ("newreno", "cubic", "dctcp")
FEW = 20.0
"""Events are compared relative to at least this many: two timeouts are not twice as bad as one."""


@dataclass(frozen=True)
class Verdict:
    """The outcome of a case."""

    name: str
    apart: Mapping[str, float]
    """By how much each mean diverges, in percent of Linux's; 0 within the interval of Linux's mean."""
    means: Mapping[str, tuple[float, float, float]]
    """Simulated, Linux, and half of the 95 % interval of Linux's mean."""
    failure: str | None = None


def draw(seed: int, number: int) -> tuple[str, str]:
    """Case ``number`` of ``seed``: its name and its experiment."""
    random = Random(f"many {seed} {number}")

    def among(least: float, most: float) -> int:
        """A whole number whose logarithm is uniform."""
        return round(exp(random.uniform(log(least), log(most))))

    shape = random.choice(["incast", "incast", "long", "random", "queries", "hybrid"])
    cc = random.choice(CONTROLLERS)
    ecn = cc == "dctcp" or random.random() < 0.3
    mtu = random.choice([1500, 1500, 9000])
    rate = random.choice([10_000, 10_000, 25_000, among(1_000, 40_000)])
    delay = among(250, 50_000)
    tcp = [f'cc = "{cc}"', f"ecn = {str(ecn).lower()}", f'rto_min = "{random.choice([200, 200, 10, 5])}ms"']
    tcp += ['ect_syn = "both"'] if cc == "dctcp" else []
    switch = [f"queue = {among(40, 1500)}"] + ([f"ecn = {among(8, 100)}"] if ecn else [])
    hosts = [f'rate = "{rate}Mbps"', f'delay = "{delay}ns"', f'mtu = "{mtu}B"']
    tables: dict[str, list[str]] = {"hosts": hosts, "switch": switch, "tcp": tcp}
    racks = random.random() < 0.5 or shape == "queries"
    fabric = ['kind = "leaf_spine"', "racks = 4", "hosts_per_rack = 8", "spines = 2"] if racks else []
    if racks:
        tables["links"] = [
            f'rate = "{random.choice([rate, 2 * rate, 4 * rate])}Mbps"',
            f'delay = "{among(200, 2000)}ns"',
        ]
    senders, length = among(3, 31 if racks else 40), among(20, 60)
    if shape == "incast":
        size = among(4_000, 1_000_000)
        period = 1.5 * senders * size * 8 / rate + 5_000
        rounds = max(1, min(20, round(1e9 / (senders * size * 8)), int(length * 1e3 / period)))
        length = min(1_000, round(rounds * period / 1e3) + 300)
        flows = ["[[workload]]", 'kind = "incast"', f"senders = {senders}", f'size = "{size}B"']
        flows += [
            'to = "host0"',
            f'period = "{round(period)}us"',
            f"rounds = {rounds}",
            f'jitter = "{among(1, 1000)}us"',
        ]
    elif shape == "long":
        flows = []
        for sender in range(1, senders + 1):
            flows += ["[[flows]]", f'from = "host{sender}"', 'to = "host0"', f'jitter = "{among(1, 1000)}us"']
    elif shape == "random":
        sizes = random.choice(["web-search", "hadoop", "cache-follower", "storage"])
        flows = [
            "[[workload]]",
            'kind = "poisson"',
            f"load = {random.uniform(0.1, 0.6):.2f}",
            f'sizes = "{sizes}"',
        ]
    elif shape == "queries":
        flows = ["[[workload]]", 'kind = "key_value"', 'from = "rack0.host0"', 'to = "rack1"']
        flows += [f"values = {among(2, 30)}", f'size = "{among(1_000, 200_000)}B"', f"reads = {among(5, 40)}"]
    if shape == "hybrid":
        tables.pop("switch"), tables.pop("links", None)
        length = among(50, 200)
        fabric = ['kind = "hybrid"', "racks = 3", f"hosts_per_rack = {among(2, 16)}"]
        hosts[:] = [f'rate = "{4 * rate}Mbps"', f'delay = "{among(1, 1500)}ns"', 'mtu = "9000B"']
        tables["packet"] = [f'rate = "{rate}Mbps"', 'delay = "5us"', "switch_queue = 3"]
        tables["circuit"] = [f'rate = "{8 * rate}Mbps"', 'delay = "30us"']
        tables["schedule"] = [
            'kind = "etalon"',
            f"stands_for = {among(4, 25)}",
            'day = "180us"',
            'night = "20us"',
        ]
        small = among(8, 60)
        tables["voq"] = [f"small = {small}"]
        if random.random() < 0.5:
            tables["voq"] += [f"large = {small * 3}", f'advance = "{among(50, 600)}us"']
        if ecn:
            tables["voq"].append(f"ecn_small = {max(2, small // 2)}")
        flows = ["[[flows]]", 'from = "rack0"', 'to = "rack1"', f'jitter = "{among(1, 500)}us"']
    elif not fabric:
        fabric = ['kind = "star"', f"hosts = {max(senders, 31) + 2}"]
    lines = [f'duration = "{length}ms"', "[fabric]", *fabric]
    for name, keys in tables.items():
        lines += [f"[{name}]", *keys]
    return f"{shape}-{cc}", "\n".join([*lines, *flows]) + "\n"


def numbers(result: firstlight.Result) -> Iterator[tuple[str, float]]:
    """The quantities of a run that are compared."""
    flows = result.flows
    times = flows["fct_us"].dropna().to_numpy(dtype=float)
    goodput = flows["bytes_received"].to_numpy(dtype=float) / float(result.manifest["elapsed_us"])
    if len(times):
        yield "completion", float(times.mean())
        yield "p99 completion", float(np.quantile(times, 0.99))
    yield "goodput", float(goodput.mean())
    if not len(times) and goodput.any():
        yield "Jain's index", float(goodput.sum() ** 2 / (len(goodput) * (goodput**2).sum()))
    for name, metric in (("drops", "dropped_packets"), ("marks", "marked_packets"), ("timeouts", "timeouts")):
        yield name, float(result.summary[metric])
    if "job_mean_us" in result.summary:
        yield "jobs", float(result.summary["job_mean_us"])


def judge(case: tuple[str, str], number: int = 0) -> Verdict:
    """Run a case with each seed on both kinds of hosts."""
    name, text = f"{number} {case[0]}", case[1]
    found: dict[str, dict[str, list[float]]] = {kind: {} for kind in KINDS}
    with TemporaryDirectory(prefix="differential-") as folder:
        file = Path(folder) / "case.toml"
        file.write_text(text, encoding="utf-8")
        for kind in KINDS:
            for seed in range(1, SEEDS + 1):
                try:
                    result = firstlight.run(file, {"hosts.kind": kind, "seed": seed})
                except firstlight.FirstlightError as e:
                    return Verdict(name, {}, {}, f"{kind} hosts: {e}")
                for metric, value in numbers(result):
                    found[kind].setdefault(metric, []).append(value)
    apart, means = {}, {}
    for metric, theirs in found["linux"].items():
        ours = found["simulated"].get(metric, [])
        if not ours:
            apart[metric] = 100.0
            continue
        half = float(half_interval(np.asarray(theirs))) if len(theirs) > 1 else 0.0
        a, b = float(np.mean(ours)), float(np.mean(theirs))
        means[metric] = (a, b, half)
        least = FEW if metric in ("drops", "marks", "timeouts") else 0.0
        apart[metric] = 0.0 if abs(a - b) <= half or a == b else 100 * abs(a - b) / max(b, least)
    return Verdict(name, apart, means)


def main() -> None:
    """Judge the cases and list all."""
    parser = argparse.ArgumentParser(prog="differential.many", description=__doc__)
    parser.add_argument("--cases", type=int, default=40)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=None, help="runs at a time (default: one per processor)")
    parser.add_argument("--out", type=Path, default=Path("results/many"))
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    chosen = range(asked.first, asked.first + asked.cases)
    cases = [draw(asked.seed, number) for number in chosen]
    for number, (name, text) in zip(chosen, cases, strict=True):
        (asked.out / f"{number}-{name}.toml").write_text(text, encoding="utf-8")
    with ProcessPoolExecutor(asked.jobs) as pool:
        verdicts = list(pool.map(judge, cases, chosen))
    (asked.out / "list.json").write_text(
        json.dumps([asdict(v) for v in verdicts], indent=1) + "\n", encoding="utf-8"
    )
    for metric in dict.fromkeys(metric for v in verdicts for metric in v.apart):
        apart = sorted(((v.apart[metric], v) for v in verdicts if metric in v.apart), key=lambda p: -p[0])
        every = [value for value, _ in apart]
        median, most = np.percentile(every, [50, 95])
        print(f"{metric}: {len(every)} cases, median {median:.1f} %, 95th percentile {most:.1f} %")
        for value, verdict in apart[:6]:
            if value > 3:
                ours, theirs, half = verdict.means.get(metric, (0.0, 0.0, 0.0))
                means = f"simulated {ours:.6g}, Linux {theirs:.6g} +- {half:.3g}"
                print(f"   {value:8.1f} %  {verdict.name}: {means}")
    for failed in (v for v in verdicts if v.failure):
        print(f"failed: {failed.name}: {failed.failure}")


if __name__ == "__main__":
    main()
