"""Long tests outside of the suite (`make soak`): kills at random lose nothing, many runs leak nothing.

python python/tests/soak.py [--kills 200] [--runs 10000]
"""

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import firstlight as fl
from conftest import SMALL, argv, environment
from firstlight.runs import leftovers
from firstlight.runs.result import is_sound

EXPERIMENT = f'{SMALL}\n[sweep]\n"voq.small" = [8, 16, 32]\nseed = [1, 2, 3, 4]\n'
COMMANDS = {
    "run": (["run", "small.toml", "--set", "duration=96ms", "--out", "r", "--capture"], 4.0),
    "sweep": (["sweep", "small.toml", "--out", "s", "--jobs", "2"], 6.0),
    "reproduce": (["reproduce", "hotspot", "--out", "h", "--jobs", "2"], 8.0),
}
"""The words of each command, and the seconds within which it is killed."""
ALLOWED_MB = 16.0
"""Growth of a process over its runs that counts as none: the allocator's own."""


def main() -> None:
    """Run both parts and print their numbers."""
    options = argparse.ArgumentParser()
    options.add_argument("--kills", type=int, default=200)
    options.add_argument("--runs", type=int, default=10_000)
    wanted = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="firstlight-soak-") as name:
        folder = Path(name)
        kill_at_random(folder, wanted.kills)
        run_many(folder, wanted.runs)


def kill_at_random(folder: Path, kills: int) -> None:
    """Kill commands with SIGKILL; after each, what was there before is there and sound."""
    dice = random.Random(1)
    for name, (words, within) in COMMANDS.items():
        for path in folder.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        (folder / "small.toml").write_text(EXPERIMENT if name == "sweep" else SMALL)
        share = kills // len(COMMANDS)
        before: set[Path] = set()
        killed = 0
        for _ in range(share):
            killed += kill_once(folder, words, dice.uniform(0.0, within))
            now = set(results(folder))
            check(before <= now, f"{name}: lost {before - now}")
            check(all(map(is_sound, now)), f"{name}: a result is not sound")
            before = now
        check(
            subprocess.run(argv(words), cwd=folder, env=environment()).returncode == 0, f"{name} does not end"
        )
        left = [p for place in (folder, *folder.glob("*/points")) for p in leftovers.left_in(place)]
        check(not left, f"{name}: left {left}")
        print(f"{name}: {killed} of {share} starts killed, nothing lost, nothing left", flush=True)


def kill_once(folder: Path, words: list[str], after: float) -> bool:
    """Start a command and kill it; whether it still ran then."""
    process = subprocess.Popen(
        argv(words), cwd=folder, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
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


def run_many(folder: Path, runs: int) -> None:
    """Run many experiments in this process: its memory, its descriptors and ``/dev/shm`` stay as they are."""
    file = folder / "many.toml"
    file.write_text(SMALL)
    started = time.monotonic()
    first: tuple[float, int, int] | None = None
    for number in range(runs):
        fl.run(file, {"seed": number, "duration": "6ms", "warmup": "0s"}, out=folder / "many")
        if number == runs // 10:
            first = held()
    assert first is not None
    last = held()
    check(last[0] - first[0] < ALLOWED_MB and last[1:] == first[1:], f"leaks: {first} -> {last}")
    print(
        f"{runs} runs in {time.monotonic() - started:.0f} s: memory {first[0]:.0f} -> {last[0]:.0f} MB, "
        f"descriptors {first[1]} -> {last[1]}, /dev/shm {first[2]} -> {last[2]} entries"
    )


def held() -> tuple[float, int, int]:
    """Memory (MB), open descriptors, and entries of ``/dev/shm`` that are ours."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    shm = len(list(Path("/dev/shm").glob("firstlight-*")))
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6, len(os.listdir("/proc/self/fd")), shm


def check(right: bool, problem: str) -> None:
    """End with an error unless ``right``."""
    if not right:
        sys.exit(f"error: {problem}")


if __name__ == "__main__":
    main()
