"""What Linux hosts cost: Etalon's pair with 16 CUBIC flows and VOQs of 16 packets, in virtual time.

The CPU time is that of the kernel's process and of all that runs in it. Two runs of different length give the
cost of a virtual second by their difference; what is left is set-up: boot, hosts, flows, tables. Shares are
sampled by `perf`, where it is installed, and divided by the object that the processor was in: the kernel's
binary, the engine's shared object, the processes of programs; and what the machine's own kernel did for them.
"""

import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

HERE = Path(__file__).resolve().parent
SPEC = HERE.parent / "experiments" / "etalon" / "fig08-static-voq" / "experiment.toml"
SHORT, LONG = 0.5, 2.5
WARMUP = "96ms"
ENOUGH = 3.0
"""Seconds of one core per virtual second that are aimed at."""


def run_once(seconds: float) -> dict[str, float]:
    """One run in this process's children: their CPU time, and the wall's."""
    import firstlight

    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    overrides = {"hosts.kind": "linux", "duration": f"{seconds * 1000:g}ms", "warmup": WARMUP}
    result = firstlight.run(SPEC, overrides)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {
        "cpu_s": cpu,
        "wall_s": time.monotonic() - started,
        "packets": float(result.manifest["counts"]["delivered_data_packets"]),
    }


def command(seconds: float) -> list[str]:
    """The same in a process of its own."""
    return [sys.executable, str(Path(__file__).resolve()), str(seconds)]


def sample(seconds: float) -> dict[str, float]:
    """One run in a process of its own."""
    done = subprocess.run(command(seconds), stdout=subprocess.PIPE, text=True, check=True)
    answer: dict[str, float] = json.loads(done.stdout)
    return answer


def side_by_side(seconds: float, runs: int) -> float:
    """Wall time of several runs at once, by that of one alone."""
    started = time.monotonic()
    for process in [subprocess.Popen(command(seconds), stdout=subprocess.DEVNULL) for _ in range(runs)]:
        process.wait()
    together = time.monotonic() - started
    started = time.monotonic()
    sample(seconds)
    return together / (time.monotonic() - started)


def shares() -> dict[str, float] | None:
    """Percent of the CPU time by who spent it; nothing without a `perf` that works."""
    perf = shutil.which("perf")
    if perf is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        data = str(Path(folder) / "perf.data")
        record = [perf, "record", "-q", "-e", "cpu-clock", "-F", "1999", "-o", data, "--", *command(LONG)]
        if subprocess.run(record, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode:
            return None
        report = [perf, "report", "-i", data, "--stdio", "--sort", "comm,dso"]
        text = subprocess.run(report, capture_output=True, text=True, check=False).stdout
    found: dict[str, float] = {}
    for percent, comm, place in re.findall(r"^ *([\d.]+)% +(\S+) +(\S+)", text, re.MULTILINE):
        if comm.startswith("python") or (who := owner(comm, place)) is None:
            continue
        found[who] = found.get(who, 0.0) + float(percent)
    whole = sum(found.values())
    return {who: 100 * part / whole for who, part in found.items()} if whole else None


def owner(comm: str, place: str) -> str | None:
    """The owner of a sample, by its process and object."""
    if comm.startswith("uml-userspace"):
        return "programs"
    if "engine" in place or "firstlight_uml" in place:
        return "engine"
    if place.startswith("[kernel"):
        return "the machine's kernel"
    return "Linux hosts' kernel"


def state() -> str | None:
    """Why Linux hosts cannot be measured here, if they cannot."""
    import firstlight
    from firstlight.linux import installed, kernels

    try:
        kernels.find(250)
        installed.engine()
    except firstlight.FirstlightError as missing:
        return str(missing)
    return None


def measure(repeats: int) -> dict[str, object]:
    """All figures."""
    if missing := state():
        return {"missing": missing}
    short, long = ([sample(s) for _ in range(repeats)] for s in (SHORT, LONG))
    seconds = LONG - SHORT
    cpu = [(b["cpu_s"] - a["cpu_s"]) / seconds for a, b in zip(short, long, strict=True)]
    packets = (long[0]["packets"] - short[0]["packets"]) / seconds
    return {
        "missing": None,
        "cpu_s_per_virtual_second": {"median": median(cpu), "min": min(cpu), "max": max(cpu)},
        "cpu_us_per_delivered_packet": 1e6 * median(cpu) / packets,
        "set_up_cpu_s": median(a["cpu_s"] for a in short) - SHORT * median(cpu),
        "shares_percent": shares(),
        "cores": len(os.sched_getaffinity(0)),
        "side_by_side": side_by_side(LONG, min(2, len(os.sched_getaffinity(0)))),
    }


def render(figures: dict[str, object]) -> list[str]:
    """The figures as lines of text."""
    title = "Linux hosts: Etalon's pair, 16 CUBIC flows, 16 packets, kernel in virtual time"
    if figures["missing"]:
        return [title, f"  not measured: {figures['missing']}"]
    cost, parts = figures["cpu_s_per_virtual_second"], figures["shares_percent"]
    assert isinstance(cost, dict)
    shares = (
        ", ".join(f"{who} {part:.0f} %" for who, part in parts.items())
        if isinstance(parts, dict)
        else "no perf"
    )
    verdict = "met" if cost["median"] <= ENOUGH else "MISSED"
    return [
        title,
        f"  {cost['median']:.2f} s of one core per virtual second ({cost['min']:.2f} - {cost['max']:.2f}),"
        f" aim {ENOUGH:g}: {verdict}; {figures['cpu_us_per_delivered_packet']:.1f} us per data packet",
        f"  set-up and tables: {figures['set_up_cpu_s']:.2f} s; shares: {shares}",
        f"  two runs at once on {figures['cores']} cores take {figures['side_by_side']:.2f} times one",
    ]


if __name__ == "__main__":
    print(json.dumps(run_once(float(sys.argv[1]))))
