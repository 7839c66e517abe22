"""What accounts cost: each experiment without one, and with ``measure.account = true``.

``python benches/account.py [EXPERIMENT ...]``: processor time of a run and of writing its result, in a
process of its own, the median of five; the processes of both settings alternate.
"""

import json
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
REPEATS = 5
RUN = """
import json, resource, sys
import firstlight as fl
experiment, settings, folder = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3]
def used():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime, usage.ru_utime + usage.ru_stime
fl.run(experiment, settings, out=f"{folder}/first")  # imports what a result needs
before, runs = used(), 0
while runs == 0 or used()[1] - before[1] < 0.5:
    result, runs = fl.run(experiment, settings, out=f"{folder}/{runs}"), runs + 1
print(json.dumps([*((now - then) / runs for now, then in zip(used(), before, strict=True)), result.digest]))
"""


def incast(senders: int) -> tuple[str, dict[str, object]]:
    """The benchmark's incast with flows of 20 MB."""
    to = f"host{senders}"
    sized = {"fabric.hosts": senders + 1, "flows.0.to": to, "flows.0.size": "20MB", "duration": "2s"}
    return "benches/incast.toml", sized


EXPERIMENTS: dict[str, tuple[str, dict[str, object]]] = {
    "20 flows of 20 MB": incast(20),
    "40 flows of 20 MB": incast(40),
    "tree": ("benches/tree.toml", {}),
    "etalon-pair": ("benches/etalon-pair.toml", {}),
    "answers": ("docs/tutorial.md", {}),
    "two-racks": ("docs/guide.md", {}),
    "hdfs": ("docs/guide.md", {}),
    "leaf-spine": ("docs/guide.md", {}),
    "lossless": ("docs/guide.md", {}),
}


def experiment(name: str, place: str, folder: Path) -> Path:
    """The file of an experiment, which may be on a page."""
    if place.endswith(".toml"):
        return ROOT / place
    block = rf"^<!-- file: {name}\.toml -->\n```toml\n(.*?)^```$"
    found = re.search(block, (ROOT / place).read_text(), re.MULTILINE | re.DOTALL)
    assert found, f"{place} has {name}.toml"
    file = folder / f"{name}.toml"
    file.write_text(found[1])
    return file


def measure(file: Path, settings: dict[str, object]) -> tuple[float, float, str]:
    """User time and all processor time of a run, and its digest."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", RUN, str(file), json.dumps(settings), folder]
        user, total, digest = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return user, total, digest


def main() -> None:
    """Print a row for each experiment."""
    print("| experiment | user time without (s) | with accounts | all time |")
    print("|---|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as folder:
        for name in sys.argv[1:] or EXPERIMENTS:
            place, settings = EXPERIMENTS[name]
            file = experiment(name, place, Path(folder))
            both = {**settings, "measure.account": True}
            pairs = [(measure(file, settings), measure(file, both)) for _ in range(REPEATS)]
            assert len({digest for pair in pairs for *_, digest in pair}) == 1, "accounts change no packet"
            (user, total), (user_with, total_with) = (
                [statistics.median(run[kind] for run in runs) for kind in (0, 1)]
                for runs in zip(*pairs, strict=True)
            )
            print(
                f"| {name} | {user:.3f} | {user_with / user:.2f} times | {total_with / total:.2f} times |",
                flush=True,
            )


if __name__ == "__main__":
    main()
