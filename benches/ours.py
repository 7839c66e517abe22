"""One measurement of our engine: runs an experiment in this process and prints one line of JSON about it.

The kernel tells user from system time by clock ticks, and a run can last a few ticks only; so the same run is
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


def measure(spec: Path, overrides: dict[str, object], fill: float) -> dict[str, object]:
    """Runs `spec` until `fill` CPU seconds are spent; CPU times are per run."""
    core = load_core()
    text = spec.read_text()
    runs = 0
    digests = set()
    user_0, system_0 = user_and_system()
    user = system = 0.0
    while runs == 0 or user + system < fill:
        manifest = json.loads(core.run(text, str(spec), overrides)["manifest"])
        digests.add(manifest["digest"])
        runs += 1
        user, system = (now - then for now, then in zip(user_and_system(), (user_0, system_0), strict=True))
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
        "max_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "simulated_s": manifest["duration_us"] / 1e6,
        "digest": digests.pop(),
        "version": core.version(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("spec", type=Path)
    parser.add_argument("--set", dest="overrides", type=json.loads, default={}, help="overrides in JSON")
    parser.add_argument("--fill", type=float, default=0.0, help="CPU seconds to fill with runs")
    args = parser.parse_args()
    print(json.dumps(measure(args.spec, args.overrides, args.fill)))


if __name__ == "__main__":
    main()
