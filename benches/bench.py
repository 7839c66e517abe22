"""Our engine and a peer on the same work, in one go and on one core: what `make bench` runs.

Cost is user CPU time per packet-hop (one packet transmitted over one link, data and acknowledgements alike)
and per delivered data packet. Repeats of ours, of the peer and of our forwarding floor alternate, so that a
change of the machine's speed meets all of them. Reported are the median and the range. The same figures go to
bench-results.json.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import fct
import linux_hosts
import machine
import ns3
import programs
import schedulers
import table

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
TARGET = ROOT / os.environ.get("CARGO_TARGET_DIR", "target")
PEERS = TARGET / "peers" / "ns3"
FLOOR = TARGET / "release" / "examples" / "forwarding"
SCHEDULING = TARGET / "release" / "examples" / "scheduling"

FCT = PEERS.parent / "tree"

# Name, experiment file, ns-3 program and its options.
WORKLOADS: tuple[tuple[str, str, list[str | Path] | None], ...] = (
    ("incast", "incast.toml", ["incast", "--duration=0.5"]),
    ("tree", "tree.toml", ["tree", "--duration=1", f"--flows={FCT / 'flows.txt'}"]),
    ("permutation", "permutation.toml", None),
    ("etalon-pair", "etalon-pair.toml", ["etalon_pair", "--duration=1"]),
)
# Fat trees of so many ports a switch, for how cost grows: 16, 128 and 3,456 hosts; the permutation has 1,024.
GROWTH = (4, 8, 24)
GROWTH_REPEATS = 3
FILL = 1.0  # CPU seconds that a short run is repeated for
LONG_SPEC = "etalon-pair.toml"
LONG_OVERRIDES: dict[str, object] = {"duration": "14.4s", "measure.pair": [0, 1]}  # 3000 weeks, measured

Sample = dict[str, float]
Jobs = dict[tuple[str, str], Callable[[], Sample]]
Samples = dict[tuple[str, str], list[Sample]]


def run_json(command: list[str | Path]) -> Sample:
    """Runs `command` and reads the line of JSON that it prints."""
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"failed: {' '.join(map(str, command))}")
    sample: Sample = json.loads(done.stdout)
    return sample


def run_ours(
    spec: str, overrides: dict[str, object] | None = None, fill: float = FILL, flows: Path | None = None
) -> Sample:
    """One sample of our engine, in a process of its own. Its flows go to the folder `flows`."""
    options = ["--set", json.dumps(overrides or {}), "--fill", str(fill)]
    if flows is not None:
        flows.mkdir(parents=True, exist_ok=True)
        options += ["--flows", str(flows)]
    return run_json([sys.executable, HERE / "ours.py", HERE / spec, *options])


def build_floor() -> None:
    """Builds the forwarding example, whose cost is the floor under any transport on our engine."""
    command = ["cargo", "build", "--quiet", "--release", "-p", "firstlight-sim"]
    command += ["--example", "forwarding"]
    subprocess.run(command, cwd=ROOT, check=True)


def peer_state() -> str | None:
    """Builds the peer; says what is missing if it cannot."""
    try:
        ns3.build(PEERS)
    except ns3.Missing as missing:
        return str(missing)
    return None


def plan(with_peer: bool) -> Jobs:
    """The command of each repeat, by workload and side."""
    jobs: Jobs = {}
    for name, spec, program in WORKLOADS:
        jobs[name, "ours"] = partial(run_ours, spec)
        jobs[name, "floor"] = partial(run_json, [FLOOR, name])
        if with_peer and program:
            jobs[name, "ns3"] = partial(run_json, ns3.command(PEERS, program))
    jobs["etalon-14.4s", "ours"] = partial(run_ours, LONG_SPEC, LONG_OVERRIDES, fill=0)
    return jobs


def growth() -> Jobs:
    """The permutation on smaller and larger fat trees."""
    jobs: Jobs = {}
    for k in GROWTH:
        jobs[f"permutation-{k}", "ours"] = partial(run_ours, "permutation.toml", {"fabric.k": k})
        jobs[f"permutation-{k}", "floor"] = partial(run_json, [FLOOR, "permutation", "5", str(k)])
    return jobs


def count_peer_hops() -> dict[str, Sample]:
    """The counts of ns-3, from separate runs. Its flows of the tree are those that our side has run
    before."""
    run_ours("tree.toml", fill=0, flows=FCT)
    counts: dict[str, Sample] = {}
    for name, _, program in WORKLOADS:
        if program:
            progress(f"counting packet-hops of ns-3: {name}")
            times = [f"--times={FCT / 'ns3-times.txt'}"] if name == "tree" else []
            counts[name] = run_json(ns3.command(PEERS, [*program, *times], count=True))
    return counts


def completion_times() -> dict[str, dict[str, object]]:
    """Of the tree's flows on both sides; drawn in `tree-fct.svg`."""
    sides = {"ours": fct.read(FCT / "times.txt"), "ns3": fct.read(FCT / "ns3-times.txt")}
    fct.figure(sides, HERE / "tree-fct.svg")
    return fct.quantiles(sides)


def gather(jobs: Jobs, repeats: int) -> Samples:
    """Runs every job `repeats` times, all of them in turn."""
    samples: Samples = {key: [] for key in jobs}
    for repeat in range(repeats):
        for (name, side), job in jobs.items():
            progress(f"repeat {repeat + 1} of {repeats}: {name}, {side}")
            samples[name, side].append(job())
    progress("")
    return samples


def progress(text: str) -> None:
    """Says on a terminal what is being run, on one line."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def spread(values: list[float]) -> dict[str, float]:
    """Median and range."""
    return {"median": median(values), "min": min(values), "max": max(values)}


def side_figures(samples: list[Sample], counts: Sample) -> dict[str, object]:
    """The figures of one side from its timed samples and its counts."""
    user = [sample["user_cpu_s"] for sample in samples]
    figures: dict[str, object] = {
        "packet_hops": counts["packet_hops"],
        "user_cpu_s": spread(user),
        "user_ns_per_packet_hop": spread([1e9 * cpu / counts["packet_hops"] for cpu in user]),
    }
    if "delivered_data_packets" in counts:
        delivered = counts["delivered_data_packets"]
        figures["delivered_data_packets"] = delivered
        figures["user_us_per_delivered_packet"] = spread([1e6 * cpu / delivered for cpu in user])
    if "max_rss_mb" in counts:
        figures["max_rss_mb"] = max(sample["max_rss_mb"] for sample in samples)
    return figures


def summarize(samples: Samples, peer_counts: dict[str, Sample]) -> dict[str, dict[str, object]]:
    """Figures by workload and side."""
    result: dict[str, dict[str, object]] = {}
    for (name, side), runs in samples.items():
        counts = peer_counts[name] if side == "ns3" else runs[0]
        result.setdefault(name, {})[side] = side_figures(runs, counts)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description="Our engine and a peer on the same work, on one core.")
    parser.add_argument("--repeats", type=int, default=5, help="runs of each side (default 5)")
    parser.add_argument("--no-peer", action="store_true", help="our side alone")
    parser.add_argument("--out", type=Path, default=ROOT / "bench-results.json")
    args = parser.parse_args()

    facts = machine.facts()
    build_floor()
    schedulers.build(ROOT)
    missing = "left out by --no-peer" if args.no_peer else peer_state()
    progress("Linux hosts")
    linux = linux_hosts.measure(min(args.repeats, 3))
    progress("programs on Linux hosts")
    of_programs = programs.measure(min(args.repeats, 3))
    core = max(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {core})

    peer_counts = count_peer_hops() if missing is None else {}
    samples = gather(plan(missing is None), args.repeats)
    samples |= gather(growth(), min(args.repeats, GROWTH_REPEATS))
    scheduling = schedulers.measure(SCHEDULING, args.repeats)
    schedulers.figure(scheduling, HERE / "schedulers.svg")

    results: dict[str, Any] = {
        "machine": facts | {"core": core, "ns3": ns3.version() if missing is None else None},
        "repeats": args.repeats,
        "peer_missing": missing,
        "workloads": summarize(samples, peer_counts),
        "linux_hosts": linux,
        "programs": of_programs,
        "schedulers": scheduling,
        "tree_completion_times_us": completion_times() if missing is None else None,
    }
    results |= {"comparisons": table.comparisons(results), "targets": table.targets(results)}
    args.out.write_text(json.dumps(results, indent=2) + "\n")
    print(table.render(results))
    if missing is None:
        print("\n".join(["", *fct.render(results["tree_completion_times_us"])]))
    print("\n".join(["", *linux_hosts.render(linux), "", *programs.render(of_programs)]))
    print("\n".join(["", *schedulers.render(scheduling)]))
    print(f"\nwritten to {args.out}")


if __name__ == "__main__":
    main()
