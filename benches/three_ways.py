"""Figs. 8, 9 and 11 of Etalon on simulated, Linux and dilated hosts, at the time scale of its testbed, 20.

The paper's numbers stand beside them. Needs root, a kernel of Linux hosts, and the machine for itself. Prints
tables, of which ``docs/dilation.md`` has a part, and draws ``OUT/three-ways.png``; dilated runs that are
invalid have a star and hollow marks:
.venv/bin/python benches/three_ways.py OUT
"""

import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import firstlight as fl
import matplotlib as mpl
import numpy as np
from firstlight.claims import read
from firstlight.claims.claim import Claim
from firstlight.claims.form import Value

CLAIMS = ("fig08-static-voq", "fig09-dynamic-voq", "fig11-dynamic-voq-retcp")
HOSTS = ("simulated", "linux", "dilated")
SCALE = 20
LENGTH = {"duration": "1500ms", "warmup": "403.2ms"}
"""A run in dilated time takes half a minute."""
UTILIZATION, TAIL, INVALID = "circuit_utilization_pct", "p99_all_us", "invalid"
LOOKS: dict[str, dict[str, Any]] = {
    "paper": {"color": "#000000", "ls": "--", "marker": "s", "mfc": "none", "label": "paper (testbed)"},
    "simulated": {"color": "#0072b2", "marker": "o", "label": "simulated"},
    "linux": {"color": "#009e73", "marker": "^", "label": "Linux, virtual time"},
    "dilated": {
        "color": "#d55e00",
        "marker": "D",
        "ls": "none",
        "mfc": "white",
        "label": "Linux, dilated time",
    },
}
Numbers = dict[str, dict[str, float]]
"""Metrics by kind of hosts, or ``paper``."""


def measured(claim: Claim, settings: Mapping[str, Any], target: Path, hosts: str) -> fl.Result:
    """The result at one point; one that is there already is not run again."""
    if target.exists():
        return fl.load(target)
    overrides = {**settings, **LENGTH, "time_scale": SCALE, "hosts.kind": hosts}
    return fl.run(claim.folder / "experiment.toml", overrides, out=target)


def points(claim: Claim, out: Path) -> Iterator[tuple[Value, Numbers]]:
    """The values of the claim's axis, each with what was measured there."""
    (axis,) = claim.axes
    for value in axis.values:
        numbers: Numbers = {"paper": dict(claim.expected("paper", {axis.name: value}, "", SCALE))}
        for hosts in HOSTS:
            target = out / claim.folder.name / f"{value}-{hosts}"
            result = measured(claim, axis.overrides(value), target, hosts)
            numbers[hosts] = {m: result.summary[m] for m in (UTILIZATION, TAIL)}
            numbers[hosts][INVALID] = bool(result.invalid)
        print(claim.name, value, {k: round(n[UTILIZATION], 1) for k, n in numbers.items()}, file=sys.stderr)
        yield value, numbers


def table(found: Mapping[str, list[tuple[Value, Numbers]]], claims: Iterable[Claim]) -> str:
    """All points, then the mean distances of dilated hosts from the others."""
    kinds = ("paper", *HOSTS)
    lines = ["| figure | point | " + " | ".join([*kinds, *(f"p99, {k}" for k in kinds)]) + " |"]
    lines += ["|---|---|" + "--:|" * (2 * len(kinds))]
    apart = ["| figure | paper, utilization (points) | paper, p99 (%) | Linux (points) | Linux, p99 (%) |"]
    apart += ["|---|--:|--:|--:|--:|"]
    for claim in claims:
        (axis,), rows = claim.axes, found[claim.name]
        for value, n in rows:
            cells = [f"{n[k][UTILIZATION]:.1f}" for k in kinds] + [f"{n[k][TAIL]:.0f}" for k in kinds]
            star = "*" if n["dilated"][INVALID] else ""
            lines.append(f"| {claim.figure} | {axis.text(value)}{star} | {' | '.join(cells)} |")
        cells = []
        for other in ("paper", "linux"):
            cells.append(np.mean([abs(n["dilated"][UTILIZATION] - n[other][UTILIZATION]) for _, n in rows]))
            cells.append(np.mean([100 * abs(n["dilated"][TAIL] / n[other][TAIL] - 1) for _, n in rows]))
        apart.append(f"| {claim.figure} | {' | '.join(f'{cell:.1f}' for cell in cells)} |")
    return "\n".join([*lines, "", *apart])


def draw(found: Mapping[str, list[tuple[Value, Numbers]]], claims: Iterable[Claim], file: Path) -> None:
    """Utilization above, the tail of latency below; a column for each figure."""
    from matplotlib.figure import Figure

    mpl.rcParams.update({"font.size": 8, "axes.spines.top": False, "axes.spines.right": False})
    canvas = Figure(figsize=(7.6, 4.2), layout="constrained", facecolor="white")
    cells: Any = canvas.subplots(2, len(found), sharex="col", sharey="row")
    for column, claim in enumerate(claims):
        (axis,), rows = claim.axes, found[claim.name]
        for row, metric in enumerate((UTILIZATION, TAIL)):
            axes = cells[row][column]
            places = range(len(rows))
            for kind, look in LOOKS.items():
                label = "" if kind == "dilated" else look["label"]
                axes.plot(
                    places, [n[kind][metric] for _, n in rows], lw=1.2, ms=4, **{**look, "label": label}
                )
            valid = [place for place, (_, n) in zip(places, rows, strict=True) if not n["dilated"][INVALID]]
            heights = [rows[place][1]["dilated"][metric] for place in valid]
            filled = {**LOOKS["dilated"], "mfc": LOOKS["dilated"]["color"]}
            axes.plot(valid, heights, ms=4, **filled)
            axes.set_ylim(bottom=0)
            axes.grid(axis="y", color="#dddddd", lw=0.6)
            axes.set_xticks(places, [f"{v:g}" for v, _ in rows], rotation=45 if len(rows) > 8 else 0)
        cells[0][column].set_title(f"{claim.display}", fontsize=9)
        cells[1][column].set_xlabel(f"{axis.label} ({axis.unit})")
    cells[0][0].set_ylabel("Circuit utilization (%)")
    cells[1][0].set_ylabel("p99 of latency (us)")
    handles, labels = cells[0][0].get_legend_handles_labels()
    canvas.legend(handles, labels, loc="outside upper center", ncols=4, frameon=False)
    canvas.savefig(file, dpi=160)


def main() -> None:
    """Run what is missing in OUT, draw, print."""
    out = Path(sys.argv[1])
    claims = read.select(read.find(), CLAIMS)
    found = {claim.name: list(points(claim, out)) for claim in claims}
    draw(found, claims, out / "three-ways.png")
    print(table(found, claims))


main()
