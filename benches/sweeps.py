"""What a point of a sweep costs besides its simulation, by who runs it, in processor time; and how much
faster a sweep is on two cores than on one, by the clock, beside two processes that only simulate.

Both say something on an idle machine only. POINTS is the number of short points:
.venv/bin/python benches/sweeps.py [POINTS]
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import firstlight as fl
from firstlight.runs import forkserver

EXPERIMENT = Path(__file__).parent / "etalon-pair.toml"
MIDDLE, LONG = 5, 240
"""How many times as long as a short point others are."""
ROUNDS = 5
SETTINGS = {"duration": "24ms", "warmup": "4800us"}
JOBS = 2


def processor_time(work: Callable[[], object]) -> float:
    """Seconds of processor time that a call takes, in this process and in those that it has ended."""
    before = os.times()
    work()
    after = os.times()
    return sum(after[:4]) - sum(before[:4])


def local(axes: dict[str, list[int]], out: Path, jobs: int = JOBS) -> None:
    fl.sweep(EXPERIMENT, SETTINGS, axes, out=out, jobs=jobs)
    forkserver.end()  # its processor time counts, and that of its workers


def alone(axes: dict[str, list[int]], out: Path) -> None:
    local(axes, out, 1)


def processes(axes: dict[str, list[int]], out: Path) -> None:
    with ProcessPoolExecutor(JOBS) as executor:
        fl.sweep(EXPERIMENT, SETTINGS, axes, out=out, executor=executor)


def dask(axes: dict[str, list[int]], out: Path) -> None:
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=JOBS, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        fl.sweep(EXPERIMENT, SETTINGS, axes, out=out, executor=client.get_executor())


def shards(axes: dict[str, list[int]], out: Path) -> None:
    file = out.with_suffix(".toml")
    file.write_text(f"{EXPERIMENT.read_text()}\n[sweep]\nseed = {axes['seed']}\n")
    words = [sys.executable, "-m", "firstlight", "sweep", str(file), "--out", str(out), "--jobs", "1"]
    words += [word for key, value in SETTINGS.items() for word in ("--set", f"{key}={value}")]
    running = [subprocess.Popen([*words, "--shard", f"{i}/{JOBS}"]) for i in range(1, JOBS + 1)]
    if any([process.wait() for process in running]):
        sys.exit("a shard failed")


WAYS = {
    "local processes": local,
    "ProcessPoolExecutor": processes,
    "Dask (LocalCluster)": dask,
    "shards": shards,
}


def cost(run: Callable[[dict[str, list[int]], Path], None], points: int, out: Path) -> float:
    """Seconds of processor time of a sweep of so many points."""
    return processor_time(lambda: run({"seed": list(range(1, points + 1))}, out))


def clock(cores: int, points: int, out: Path) -> float:
    """Seconds by the clock of a sweep on so many cores, with a process on each."""
    all_cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(all_cores)[:cores])
    began = time.monotonic()
    fl.sweep(EXPERIMENT, SETTINGS, {"seed": list(range(1, points + 1))}, out=out)
    taken = time.monotonic() - began
    forkserver.end()  # its processor time is not that of what is measured next, nor are its cores
    os.sched_setaffinity(0, all_cores)
    return taken


SIMULATE = """
import json, sys
import firstlight as fl
experiment, settings, points = json.loads(sys.argv[1])
fl.run(experiment, settings)
print("ready", flush=True)
sys.stdin.readline()
for seed in range(1, points + 1):
    fl.run(experiment, {**settings, "seed": seed})
"""
"""What a process does that only simulates, from the moment at which it is told to begin."""


def processes_alone(number: int, points: int) -> float:
    """Seconds by the clock in which so many processes simulate these points, and do nothing else."""
    words = [sys.executable, "-c", SIMULATE, json.dumps([str(EXPERIMENT), SETTINGS, points // number])]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    running = [subprocess.Popen(words, **pipes) for _ in range(number)]
    for process in running:
        process.stdout.readline()
    began = time.monotonic()
    for process in running:
        process.communicate("begin\n")
    return time.monotonic() - began


def speedup(points: int, folder: Path) -> None:
    """Print how much faster two cores are than one, for a sweep and for processes alone: medians."""
    taken: dict[str, list[float]] = {"sweep": [], "alone": []}
    seconds: list[float] = []
    for number in range(ROUNDS):
        one, two = (clock(cores, points, folder / f"clock{cores}-{number}") for cores in (1, JOBS))
        taken["sweep"].append(one / two)
        seconds.append(one)
        taken["alone"].append(processes_alone(1, points) / processes_alone(JOBS, points))
    sweep, alone = (f"{statistics.median(ratios):.2f}" for ratios in taken.values())
    length = SETTINGS["duration"]
    print(f"| {points} of {length} | {statistics.median(seconds):.1f} s | {sweep} | {alone} |", flush=True)


def simulation(points: int) -> float:
    """Seconds of processor time of a point's simulation alone."""
    runs = processor_time(lambda: [fl.run(EXPERIMENT, {**SETTINGS, "seed": s}) for s in range(1, points + 1)])
    return runs / points


def measure(points: int, folder: Path) -> None:
    """Print a table's rows for points of the present length."""
    per_point: dict[str, float] = {}
    begins: dict[str, float] = {}
    before = simulation(points)
    for number, (name, run) in enumerate({**WAYS, "one process": alone}.items()):
        jobs = 1 if run is alone else JOBS
        begins[name] = cost(run, jobs, folder / f"begin{number}")
        whole = cost(run, points, folder / f"whole{number}")
        per_point[name] = (whole - begins[name]) / (points - jobs)
    simulated = (before + simulation(points)) / 2
    print(f"\nsimulation alone: {1e3 * simulated:.1f} ms of processor time per point, {points} points")
    print(
        "| run by | per point (ms) | of it besides simulation | to begin and end (s) |\n|---|---:|---:|---:|"
    )
    for name, seconds in per_point.items():
        besides = f"{1e3 * (seconds - simulated):.1f} ms, {100 * (1 - simulated / seconds):.0f} %"
        print(f"| {name} | {1e3 * seconds:.1f} | {besides} | {begins[name]:.1f} |")
    forkserver.end()


def main(points: int) -> None:
    """Measure short points, and long ones, of which there are a fifth; then what a second core brings."""
    long = max(points // 5, JOBS + 1)
    with tempfile.TemporaryDirectory() as name:
        for length, number in ((1, points), (LONG, long)):
            SETTINGS["duration"] = f"{24 * length}ms"
            measure(number, Path(tempfile.mkdtemp(dir=name)))
        print("\n| points | sweep on one core | on two, times as fast | two processes that only simulate |")
        print("|---|---:|---:|---:|")
        for length, number in ((1, 4 * points), (MIDDLE, points), (LONG, long // 2)):
            SETTINGS["duration"] = f"{24 * length}ms"
            speedup(number, Path(tempfile.mkdtemp(dir=name)))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
