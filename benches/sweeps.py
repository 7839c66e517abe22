"""What a point of a sweep costs besides its simulation, by who runs it, in processor time.

.venv/bin/python benches/sweeps.py [POINTS]
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import firstlight as fl

EXPERIMENT = Path(__file__).parent / "etalon-pair.toml"
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


def marginal(
    run: Callable[[dict[str, list[int]], Path], None], jobs: int, points: int, folder: Path
) -> float:
    """Seconds of processor time per point, without those that begin and end a sweep."""
    begin = cost(run, jobs, folder / "begin")
    return (cost(run, points, folder / "whole") - begin) / (points - jobs)


def main(points: int) -> None:
    """Print a table, and how well two processes share the work."""
    simulated = processor_time(
        lambda: [fl.run(EXPERIMENT, {**SETTINGS, "seed": s}) for s in range(1, points + 1)]
    )
    print(f"simulation alone: {1e3 * simulated / points:.1f} ms of processor time per point")
    print("| run by | more per point (ms) | to begin and end (s) |\n|---|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        for number, (name, run) in enumerate(WAYS.items()):
            begin = cost(run, JOBS, Path(folder, f"begin{number}"))
            whole = cost(run, points, Path(folder, f"whole{number}"))
            more = (whole - begin - simulated * (points - JOBS) / points) / (points - JOBS)
            print(f"| {name} | {1e3 * more:.1f} | {begin:.1f} |", flush=True)
        one = marginal(alone, 1, points, Path(folder, "one"))
        two = marginal(local, JOBS, points, Path(folder, "two"))
    print(f"a point takes {1e3 * one:.1f} ms with one process and {1e3 * two:.1f} ms with two: ", end="")
    print(f"two do at most {2 * one / two:.2f} times the work of one")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
