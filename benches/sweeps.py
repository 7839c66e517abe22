"""What a point of a sweep costs besides its simulation, by who runs it, in processor time; and how much
faster a sweep is on two cores than on one, by the clock, beside two processes that only simulate.

Processor time is the median of alternating rounds. The clock says something on an idle machine only, so that
every time has beside it what other processes took of the cores meanwhile: of all rounds the calmest count.
POINTS is the number of short points (200), with which it takes 8 minutes on a fast machine:
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
from machine import cpu_model

EXPERIMENT = Path(__file__).parent / "etalon-pair.toml"
MIDDLE, LONG = 5, 240
"""How many times as long as a short point others are."""
ROUNDS = 5
"""Rounds that count by the clock."""
CALM = 0.03
"""A round in which others take at most this share of the cores is calm."""
PATIENCE = 60
"""Seconds after which no further round is tried for the sake of calm."""
COSTS = 3
"""Rounds of processor time."""
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


def busy() -> float:
    """Seconds of processor time that all processes of the machine have taken, and its host from it."""
    user, nice, system, _, _, *interrupts = map(
        int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
    )
    return (user + nice + system + sum(interrupts)) / os.sysconf("SC_CLK_TCK")


class Others:
    """The share of the machine's cores that other processes take while calls run: the largest of all."""

    def __init__(self) -> None:
        self.share = 0.0

    def beside(self, call: Callable[[], float]) -> float:
        """What the call gives."""
        began, before = time.monotonic(), busy()
        given: list[float] = []
        own = processor_time(lambda: given.append(call()))
        seconds = (time.monotonic() - began) * (os.cpu_count() or 1)
        self.share = max(self.share, (busy() - before - own) / seconds)
        return given[0]


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
        process.stdin.write("begin\n")
        process.stdin.flush()
    for process in running:
        process.communicate()
    return time.monotonic() - began


def speedup(points: int, folder: Path) -> None:
    """Print how much faster two cores are than one, for a sweep and for processes alone: medians of the
    calmest rounds. In every second round two cores come first."""
    rounds: list[tuple[float, float, float, float]] = []
    began = time.monotonic()
    while len(rounds) < ROUNDS or (
        sum(share <= CALM for share, *_ in rounds) < ROUNDS and time.monotonic() - began < PATIENCE
    ):
        others, number = Others(), len(rounds)
        swept, bare = dict.fromkeys((1, JOBS), 0.0), dict.fromkeys((1, JOBS), 0.0)
        for cores in sorted(swept, reverse=number % 2 == 1):
            out = folder / f"clock{cores}-{number}"
            swept[cores] = others.beside(lambda cores=cores, out=out: clock(cores, points, out))
            bare[cores] = others.beside(lambda cores=cores: processes_alone(cores, points))
        rounds.append((others.share, swept[1], swept[1] / swept[JOBS], bare[1] / bare[JOBS]))
    share, one, sweep, alone = map(statistics.median, zip(*sorted(rounds)[:ROUNDS], strict=True))
    length = SETTINGS["duration"]
    print(
        f"| {points} of {length} | {one:.1f} s | {sweep:.2f} | {alone:.2f} | {100 * share:.0f} % |",
        flush=True,
    )


def simulation(points: int) -> float:
    """Seconds of processor time of a point's simulation alone."""
    runs = processor_time(lambda: [fl.run(EXPERIMENT, {**SETTINGS, "seed": s}) for s in range(1, points + 1)])
    return runs / points


def measure(points: int, folder: Path) -> None:
    """Print a table's rows for points of the present length: medians of rounds, in each of which every way
    and the simulation alone are measured in turn."""
    ways = {**WAYS, "one process": alone}
    simulated: list[float] = []
    taken: dict[str, list[tuple[float, float, float]]] = {name: [] for name in ways}
    for number in range(COSTS):
        simulated.append(simulation(points))
        for name, run in ways.items():
            jobs = 1 if run is alone else JOBS
            out = folder / f"{number}-{len(taken[name])}-{list(ways).index(name)}"
            begin = cost(run, jobs, out.with_name(f"{out.name}-begin"))
            each = (cost(run, points, out) - begin) / (points - jobs)
            taken[name].append((each, each - simulated[-1], begin))
    once = 1e3 * statistics.median(simulated)
    print(f"\nsimulation alone: {once:.1f} ms of processor time per point, {points} points")
    print(
        "| run by | per point (ms) | of it besides simulation | to begin and end (s) |\n|---|---:|---:|---:|"
    )
    for name, rows in taken.items():
        each, besides, begin = map(statistics.median, zip(*rows, strict=True))
        what = f"{1e3 * besides:.1f} ms, {100 * besides / each:.0f} %"
        print(f"| {name} | {1e3 * each:.1f} | {what} | {begin:.1f} |", flush=True)
    forkserver.end()


def main(points: int) -> None:
    """Measure short points, and long ones, of which there are fewer; then what a second core brings."""
    long = max(points // 20, JOBS + 1)
    with tempfile.TemporaryDirectory() as name:
        for length, number in ((1, points), (LONG, long)):
            SETTINGS["duration"] = f"{24 * length}ms"
            measure(number, Path(tempfile.mkdtemp(dir=name)))
        print(f"\n{state()}")
        print("| points | sweep on one core | on two, times as fast | two that only simulate | others |")
        print("|---|---:|---:|---:|---:|")
        for length, number in ((1, 6 * points), (MIDDLE, 2 * points), (LONG, 2 * long)):
            SETTINGS["duration"] = f"{24 * length}ms"
            speedup(max(number // JOBS, 1) * JOBS, Path(tempfile.mkdtemp(dir=name)))


def state() -> str:
    """What the numbers are of."""
    return f"Firstlight {fl.__version__}, {os.cpu_count()} processors ({cpu_model()})"


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
