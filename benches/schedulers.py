"""What a circuit schedule costs to compute, by scheduler and number of racks, and a figure of it."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

# Seconds that Solstice may take with so many racks.
ENOUGH_SECONDS = {64: 0.01, 256: 1.0}
# As many times as long as Solstice Eclipse may take.
ENOUGH_TIMES = 10

Line = dict[str, Any]


def build(root: Path) -> None:
    """Builds the example that measures."""
    command = ["cargo", "build", "--quiet", "--release", "-p", "firstlight-circuits"]
    command += ["--example", "scheduling"]
    subprocess.run(command, cwd=root, check=True)


def measure(program: Path, runs: int) -> list[Line]:
    """For each scheduler and number of racks: median seconds of `runs`, days in the week, part served."""
    done = subprocess.run([program, str(runs)], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"failed: {program}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def figure(lines: list[Line], file: Path) -> None:
    """Draws run time against the number of racks."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "firstlight"
    from matplotlib import pyplot

    fig, axes = pyplot.subplots(figsize=(6, 3), layout="constrained")
    for name in dict.fromkeys(line["scheduler"] for line in lines):
        chosen = [line for line in lines if line["scheduler"] == name]
        racks = [line["racks"] for line in chosen]
        axes.plot(racks, [1e3 * line["seconds"] for line in chosen], marker="o", markersize=3, label=name)
    axes.set(xscale="log", yscale="log", xlabel="racks", ylabel="time of a schedule (ms)")
    axes.set_xticks(sorted({line["racks"] for line in lines}))
    axes.xaxis.set_major_formatter("{x:.0f}")
    axes.minorticks_off()
    fig.legend(loc="outside right upper", frameon=False, fontsize="small")
    fig.savefig(file, metadata={"Date": None})
    pyplot.close(fig)


def render(lines: list[Line]) -> list[str]:
    """A row for each scheduler, a column for each number of racks; then what is aimed at."""
    racks = sorted({line["racks"] for line in lines})
    cells = {(line["scheduler"], line["racks"]): line for line in lines}
    text = ["time of a circuit schedule, ms (part of the demand that its circuits serve)"]
    text.append(f"  {'racks':14} " + " ".join(f"{count:>17}" for count in racks))
    for name in dict.fromkeys(line["scheduler"] for line in lines):
        row = [cells.get((name, count)) for count in racks]
        texts = [f"{1e3 * line['seconds']:.3f} ({line['served']:.0%})" if line else "no room" for line in row]
        text.append(f"  {name:14} " + " ".join(f"{cell:>17}" for cell in texts))
    for count, limit in ENOUGH_SECONDS.items():
        seconds = cells["solstice", count]["seconds"]
        verdict = "met" if seconds < limit else "MISSED"
        text.append(f"{verdict:>12}  Solstice, {count} racks, ms < {1e3 * limit:g}: {1e3 * seconds:.3g}")
    times = [cells["eclipse", count]["seconds"] / cells["solstice", count]["seconds"] for count in racks]
    verdict = "met" if max(times) <= ENOUGH_TIMES else "MISSED"
    ratios = ", ".join(f"{ratio:.1f}" for ratio in times)
    text.append(f"{verdict:>12}  Eclipse / Solstice, <= {ENOUGH_TIMES} for all racks: {ratios}")
    return text
