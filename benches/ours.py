"""One measurement of our engine: runs an experiment in this process and prints one line of JSON about it.

The kernel counts user and system time in clock ticks, and a run can last a few ticks only. So the same run is
repeated until `--fill` seconds of CPU time are spent, and the mean is reported. It is the CPU time of
everything from the experiment's text to its tables, set-up included: it is short, and counted against us.
"""

import argparse
import importlib.util
import json
import resource
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

Table = dict[str, Any]


def load_core() -> ModuleType:
    """`firstlight._core` without the package around it, whose libraries would count as our memory.

    NumPy is imported with it, so that the first run does not pay for that.
    """
    importlib.import_module("numpy")
    package = importlib.util.find_spec("firstlight")
    folders = package.submodule_search_locations if package else None
    found = [file for folder in folders or [] for file in sorted(Path(folder).glob("_core*.so"))]
    if not found:
        sys.exit("firstlight is not built in this environment: run `make setup`")
    spec = importlib.util.spec_from_file_location("firstlight._core", found[0])
    assert spec is not None and spec.loader is not None, "a shared object has a loader"
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def user_and_system() -> tuple[float, float]:
    """CPU seconds of this process so far."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime, usage.ru_stime


def peak_memory_mb() -> float:
    """The most memory of this program at once; `ru_maxrss` would begin with what its parent had."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(status["VmHWM"].removesuffix("kB")) / 1024


def write_flows(folder: Path, flows: Table) -> None:
    """Writes `flows.txt`, for a peer to run, and `times.txt`: each flow's bytes and completion time in us."""
    pairs = zip(flows["src"], flows["dst"], flows["size_bytes"], flows["start_us"], strict=True)
    lines = [f"{src} {dst} 0 100 {size} {start * 1e-6:.12f}" for src, dst, size, start in pairs]
    (folder / "flows.txt").write_text("\n".join([str(len(lines)), *lines, ""]))
    times = zip(flows["size_bytes"], flows["fct_us"], strict=True)
    (folder / "times.txt").write_text("".join(f"{size} {time:.3f}\n" for size, time in times))


def measure(
    spec: Path, overrides: dict[str, object], fill: float, folder: Path | None = None
) -> dict[str, object]:
    """Runs `spec` until `fill` CPU seconds are spent; CPU times are per run. Its flows go to `folder`."""
    core = load_core()
    text = spec.read_text()
    runs = 0
    digests = set()
    user_0, system_0 = user_and_system()
    user = system = 0.0
    while runs == 0 or user + system < fill:
        outcome = core.Experiment(text, str(spec), overrides).run()
        manifest = json.loads(outcome["manifest"])
        digests.add(manifest["digest"])
        runs += 1
        user, system = (now - then for now, then in zip(user_and_system(), (user_0, system_0), strict=True))
    if folder is not None:
        write_flows(folder, outcome["tables"]["flows"])
    if len(digests) != 1:
        sys.exit(f"{spec}: the same run gave {len(digests)} digests")
    counts = manifest["counts"]
    return {
        "packet_hops": counts["packet_hops"],
        "delivered_data_packets": counts["delivered_data_packets"],
        "events": counts["events"],
        "user_cpu_s": user / runs,
        "system_cpu_s": system / runs,
        "runs": runs,
        "max_rss_mb": peak_memory_mb(),
        "simulated_s": manifest["duration_us"] / 1e6,
        "digest": digests.pop(),
        "version": core.version(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("spec", type=Path)
    parser.add_argument("--set", dest="overrides", type=json.loads, default={}, help="overrides in JSON")
    parser.add_argument("--fill", type=float, default=0.0, help="CPU seconds to fill with runs")
    parser.add_argument(
        "--flows", type=Path, help="a folder to write the flows and their completion times to"
    )
    args = parser.parse_args()
    print(json.dumps(measure(args.spec, args.overrides, args.fill, args.flows)))


if __name__ == "__main__":
    main()
