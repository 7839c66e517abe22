"""What a point of a sweep costs besides its simulation, by who runs it, in processor time; and how much
faster a sweep is on two cores than on one, by the clock, which says something on an idle machine only.

Short points, then long ones:
.venv/bin/python benches/sweeps.py [POINTS]
"""

import os
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
LONG = 240
"""How many times as long as a short point a long one is."""
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
    """Seconds by the clock of a sweep on so many cores, with a process on each: the least of three."""
    all_cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(all_cores)[:cores])
    taken = []
    for number in range(3):
        began = time.monotonic()
        axes = {"seed": list(range(1, points + 1))}
        fl.sweep(EXPERIMENT, SETTINGS, axes, out=out.with_name(f"{out.name}-{number}"))
        taken.append(time.monotonic() - began)
    forkserver.end()  # its processor time is not that of what is measured next, nor are its cores
    os.sched_setaffinity(0, all_cores)
    return min(taken)


def simulation(points: int) -> float:
    """Seconds of processor time of a point's simulation alone."""
    runs = processor_time(lambda: [fl.run(EXPERIMENT, {**SETTINGS, "seed": s}) for s in range(1, points + 1)])
    return runs / points


def measure(points: int, folder: Path) -> None:
    """Print a table's rows for points of the present length, and how well two processes share the work."""
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
    one, two = (clock(cores, points, folder / f"clock{cores}") for cores in (1, JOBS))
    print(f"by the clock: one core {one:.2f} s, two {two:.2f} s, {one / two:.2f} times", flush=True)


def main(points: int) -> None:
    """Measure short points, then long ones, of which there are a fifth."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for length in ("short", "long"):
            (folder / length).mkdir()
        measure(points, folder / "short")
        SETTINGS["duration"] = f"{24 * LONG}ms"
        measure(max(points // 5, JOBS + 1), folder / "long")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
