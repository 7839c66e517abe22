"""Estimates of runs' costs beside the runs: for each experiment that ships, an estimate from one second.

``python benches/cost.py [FILE ...]``: experiments whose estimate exceeds a minute are left out.
"""

import sys
from pathlib import Path

import firstlight as fl

LONGEST = 60.0
"""Seconds of a run that is worth the wait."""


def files() -> list[Path]:
    """The experiments that ship."""
    folder = Path(__file__).parent.parent / "experiments"
    return sorted(folder.glob("*/*/experiment.toml"))


def main() -> None:
    """Print a row for each run that takes longer than a second."""
    print(f"{'experiment':44} {'part':>5} {'s':>6} {'of it':>6} {'hops':>6}")
    for file in [Path(name) for name in sys.argv[1:]] or files():
        try:
            estimate = fl.cost(file, budget=1.0)
            if estimate.part == 1 or estimate.seconds > LONGEST:
                continue
            run = fl.cost(file, budget=float("inf"))
        except fl.FirstlightError as error:
            print(f"{file.parent.name:44} {error}")
            continue
        ratios = estimate.seconds / run.seconds, estimate.packet_hops / run.packet_hops
        print(
            f"{file.parent.name:44} {estimate.part:5.2f} {run.seconds:6.1f} {ratios[0]:6.2f} {ratios[1]:6.2f}"
        )


if __name__ == "__main__":
    main()
