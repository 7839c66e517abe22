"""Flow completion times of both sides on the same flows: quantiles by size, and a figure."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

# Upper bounds in bytes, and what the group is called.
GROUPS = ((100e3, "up to 100 kB"), (1e6, "to 1 MB"), (float("inf"), "above"))
QUANTILES = (0.5, 0.9, 0.99)
SIDES = {"ours": "firstlight", "ns3": "ns-3"}


@dataclass
class Times:
    """Each flow's bytes and completion time in us; negative or NaN where it did not complete."""

    size: NDArray[np.float64]
    time: NDArray[np.float64]


def read(file: Path) -> Times:
    """A file of lines with both."""
    size, time = np.loadtxt(file, unpack=True)
    return Times(size, time)


def quantiles(sides: dict[str, Times]) -> dict[str, dict[str, object]]:
    """By group of sizes and side: how many flows completed, mean and quantiles in us."""
    result: dict[str, dict[str, object]] = {}
    least = 0.0
    for most, name in GROUPS:
        for side, times in sides.items():
            chosen = times.time[(times.size > least) & (times.size <= most) & (times.time > 0)]
            figures: dict[str, float] = {"flows": len(chosen)}
            if len(chosen):
                figures["mean"] = float(chosen.mean())
                figures |= {f"p{q * 100:g}": float(np.quantile(chosen, q)) for q in QUANTILES}
            result.setdefault(name, {})[side] = figures
        least = most
    return result


def figure(sides: dict[str, Times], file: Path) -> None:
    """Draws both distributions."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "firstlight"
    from matplotlib import pyplot

    fig, axes = pyplot.subplots(figsize=(5, 3), layout="constrained")
    for side, times in sides.items():
        done = np.sort(times.time[times.time > 0])
        axes.step(done, np.arange(1, len(done) + 1) / len(times.time), where="post", label=SIDES[side])
    axes.set(xscale="log", xlabel="flow completion time (us)", ylabel="part of the flows", ylim=(0, 1))
    axes.legend(frameon=False)
    fig.savefig(file, metadata={"Date": None})
    pyplot.close(fig)


def render(found: dict[str, dict[str, object]]) -> list[str]:
    """Lines of text."""
    lines = ["flow completion times of the tree, the same flows on both sides, us"]
    for group, sides in found.items():
        for side, figures in sides.items():
            assert isinstance(figures, dict), "figures by name"
            numbers = "  ".join(f"{name} {value:,.0f}" for name, value in figures.items())
            lines.append(f"  {group:14} {SIDES[side]:12} {numbers}")
    return lines
