"""Long tests outside of the suite (`make soak`): kills at random lose nothing, many runs leak nothing.

python python/tests/soak.py [--kills 200] [--runs 10000] [--minutes 60]
"""

import argparse
import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import firstlight as fl
from conftest import SMALL, argv, environment
from firstlight.runs import leftovers
from firstlight.runs.result import is_sound
from test_kernel_build import Bench
from test_linux_runs import kernels_of
from test_supervision import run_directories

EXPERIMENT = f'{SMALL}\n[sweep]\n"voq.small" = [8, 16, 32]\nseed = [1, 2, 3, 4]\n'
COMMANDS = {
    "run": ["run", "small.toml", "--set", "duration=96ms", "--out", "r", "--capture"],
    "sweep": ["sweep", "small.toml", "--out", "s", "--jobs", "2"],
    "reproduce": ["reproduce", "hotspot", "--out", "h", "--jobs", "2"],
    "run on Linux hosts": ["run", "small.toml", "--hosts", "linux", "--set", "duration=96ms", "--out", "l"],
}
SETTINGS: tuple[dict[str, Any], ...] = (
    {},
    {"measure.account": True},
    {"tcp.cc": "dctcp", "voq.ecn_small": 4, "duration": "12ms"},
    {"tcp.cc": "bbr", "duration": "12ms"},
)
"""Runs in one process take turns with these. Each fiftieth is on Linux hosts; of the others each seventh
stores a capture and a timeline."""
ALLOWED_MB = 16.0
"""Growth of a process over its runs that counts as none: the allocator's own."""


def main() -> None:
    """Run both parts and print their numbers."""
    options = argparse.ArgumentParser()
    options.add_argument("--kills", type=int, default=200)
    options.add_argument("--runs", type=int, default=10_000)
    options.add_argument("--minutes", type=float, default=60.0, help="how long to go on with runs at least")
    wanted = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="firstlight-soak-") as name:
        folder = Path(name)
        if wanted.kills:
            kill_at_random(folder, wanted.kills)
            builds = folder / "builds"
            builds.mkdir()
            kill_builds(builds, wanted.kills // (len(COMMANDS) + 1))
        if wanted.runs:
            run_many(folder, wanted.runs, 60.0 * wanted.minutes)


def kill_at_random(folder: Path, kills: int) -> None:
    """Kill commands with SIGKILL; after each, what was there before is there and sound."""
    dice = random.Random(1)
    share = kills // (len(COMMANDS) + 1)
    for name, words in COMMANDS.items():
        text = f"# {folder}\n{EXPERIMENT if name == 'sweep' else SMALL}"
        clear(folder)
        (folder / "small.toml").write_text(text)
        within = seconds_of(words, folder, environment())
        clear(folder)
        (folder / "small.toml").write_text(text)
        before: set[Path] = set()
        killed = 0
        while killed < share:
            ended = not kill_once(folder, words, dice.uniform(0.0, within))
            await_end(folder)
            now = set(results(folder))
            check(before <= now, f"{name}: lost {before - now}")
            check(all(map(is_sound, now)), f"{name}: a result is not sound")
            before = now
            killed += not ended
            if ended:  # nothing is left to do, so nothing to kill
                clear(folder)
                (folder / "small.toml").write_text(text)
                before = set()
        seconds_of(words, folder, environment())
        left = [p for place in (folder, *folder.glob("*/points")) for p in leftovers.left_in(place)]
        left += run_directories(folder)
        check(not left, f"{name}: left {left}")
        print(f"{name}: killed {killed} times, nothing lost, nothing left", flush=True)


def await_end(folder: Path) -> None:
    """Wait until the kernels of killed runs have ended: they do so by themselves, at once."""
    deadline = time.monotonic() + 30.0
    while found := kernels_of(folder):
        check(time.monotonic() < deadline, f"processes outlive their command: {found}")
        time.sleep(0.01)


def kill_builds(folder: Path, kills: int) -> None:
    """Kill builds of a kernel, with stand-ins for the compilers; the kernel that was there stays whole, and
    the next build leaves nothing else."""
    dice = random.Random(2)
    bench = Bench(folder)
    words = ["kernel", "build", "--source", str(bench.tree), "--hz"]
    usual = {**environment(), **bench.environment(), "PACE": "0.2"}
    within = seconds_of([*words, "250"], folder, usual)
    before = tree(bench.cache)
    killed = 0
    while killed < kills:
        killed += kill_once(folder, [*words, "1000"], dice.uniform(0.0, within), usual)
        now = tree(bench.cache)
        check(before.items() <= now.items(), "kernel build: the kernel that was there has changed")
        if len(bench.left()) > 2 and (made := [n for n in bench.left() if "hz1000" in n]):
            shutil.rmtree(bench.cache / "kernels" / made[0])  # built before it was killed: once more
    seconds_of([*words, "1000"], folder, usual)
    listed = subprocess.run(argv(["kernel", "list", "--json"]), env=usual, capture_output=True, text=True)
    check(sorted(k["hz"] for k in json.loads(listed.stdout)) == [250, 1000], f"kernels: {listed.stdout}")
    check(len(bench.left()) == 2, f"kernel build: left {bench.left()}")
    print(f"kernel build: killed {killed} times, nothing lost, nothing left", flush=True)


def tree(folder: Path) -> dict[Path, bytes]:
    """The files of the kernels that are built, with their contents."""
    found = (folder / "kernels").glob("[!.]*/**/*")
    return {file: file.read_bytes() for file in found if file.is_file()}


def clear(folder: Path) -> None:
    """Remove what is in a directory."""
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def seconds_of(words: list[str], folder: Path, own: dict[str, str]) -> float:
    """How long a command takes on this machine now: the kills are to fall into all of it."""
    started = time.monotonic()
    ended = subprocess.run(argv(words), cwd=folder, env=own, capture_output=True, text=True)
    check(ended.returncode == 0, f"{words[0]} does not end well: {ended.stderr}")
    return time.monotonic() - started


def kill_once(folder: Path, words: list[str], after: float, own: dict[str, str] | None = None) -> bool:
    """Start a command and kill it; whether it still ran then."""
    process = subprocess.Popen(
        argv(words),
        cwd=folder,
        env=own or environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        process.wait(after)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.wait()
        return True
    return False


def results(folder: Path) -> list[Path]:
    """The complete results in a directory."""
    return [f.parent for f in folder.rglob("manifest.json") if not f.parent.name.startswith(".")]


def run_many(folder: Path, runs: int, seconds: float) -> None:
    """Run at least so many experiments in this process, and for so long: its memory, its descriptors and
    ``/dev/shm`` stay as they are."""
    file = folder / "many.toml"
    file.write_text(f"# {folder}\n{SMALL}")
    started = time.monotonic()
    first: tuple[float, int, int] | None = None
    for number in itertools.count():
        if number >= runs and time.monotonic() - started >= seconds:
            break
        settings = {"duration": "6ms", **SETTINGS[number % len(SETTINGS)], "seed": number, "warmup": "0s"}
        more: dict[str, Any] = {}
        if number % 50 == 49:
            settings["hosts.kind"] = "linux"
        elif number % 7 == 0:
            more = {"capture": True, "trace": folder / "many.pftrace"}
        fl.run(file, settings, out=folder / "many", **more)
        if number == runs // 10:
            first = held(folder)
    assert first is not None
    last = held(folder)
    check(last[0] - first[0] < ALLOWED_MB and last[1:] == first[1:], f"leaks: {first} -> {last}")
    print(
        f"{number} runs in {time.monotonic() - started:.0f} s: memory {first[0]:.0f} -> {last[0]:.0f} MB, "
        f"descriptors {first[1]} -> {last[1]}, directories of runs in memory {first[2]} -> {last[2]}"
    )


def held(folder: Path) -> tuple[float, int, int]:
    """Memory (MB), open descriptors, and run directories of Linux hosts."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    shm = len(run_directories(folder))
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6, len(os.listdir("/proc/self/fd")), shm


def check(right: bool, problem: str) -> None:
    """End with an error unless ``right``."""
    if not right:
        sys.exit(f"error: {problem}")


if __name__ == "__main__":
    main()
