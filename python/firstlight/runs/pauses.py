"""Trees of pauses on a lossless fabric: from each root back to the hosts, by the tables of a run."""

from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd

from firstlight.runs.result import Result

MOST_ROOTS = 8
MOST_BRANCHES = 6
"""The largest roots, and branches of a port, that are written; the others are counted."""


@dataclass(frozen=True)
class Pause:
    """A port that was paused, and the ports that were paused because of it."""

    name: str
    switch: str
    """The switch that paused the port; empty at the root."""
    pauses: int
    """How often the port was paused."""
    paused_us: float
    """How long the port was paused, in us; at the root, the sum of all pauses that it caused."""
    behind: "tuple[Pause, ...]"
    """The ports whose packets waited for this one, the longest pause first."""


def trees(result: Result) -> list[Pause]:
    """A tree for each class and root, the one that caused most first. Branches are ports that were paused
    because packets waited for the port above. The run must have the tables of ``[pfc]``."""
    causes = result.table("pause_causes")
    several = causes["class"].nunique() > 1
    found = []
    for (kind, root), rows in causes.groupby(["class", "root"], sort=False):
        name = f"{root}, class {kind}" if several else str(root)
        behind = _behind(_joined(rows, str(root)), str(root), frozenset({str(root)}))
        found.append(Pause(name, "", int(rows["pauses"].sum()), float(rows["paused_us"].sum()), behind))
    return sorted(found, key=lambda tree: -tree.paused_us)


def _joined(rows: pd.DataFrame, root: str) -> pd.DataFrame:
    """The rows of a root, completed: a port that was itself paused for another root gets a row of no pauses,
    so that the ports behind it stay in the tree."""
    between = [port for port in rows["egress"].unique() if port != root and port not in set(rows["name"])]
    added = [{"name": port, "egress": root, "switch": "", "pauses": 0, "paused_us": 0.0} for port in between]
    return pd.concat([rows, pd.DataFrame(added)]) if added and root != "circle" else rows


def _behind(rows: pd.DataFrame, port: str, above: frozenset[str]) -> tuple[Pause, ...]:
    """The ports whose packets waited for ``port``. A circular wait has no root: there it is all of them."""
    here = (rows["egress"] == port) | ("circle" in above)
    waiting = rows[here & ~rows["name"].isin(above)].sort_values("paused_us", ascending=False, kind="stable")
    return tuple(
        Pause(
            str(row["name"]),
            str(row["switch"]),
            int(row["pauses"]),
            float(row["paused_us"]),
            () if "circle" in above else _behind(rows, str(row["name"]), above | {str(row["name"])}),
        )
        for _, row in waiting.iterrows()
    )


def written(roots: list[Pause]) -> str:
    """The trees as lines of text: the largest ``MOST_ROOTS`` roots, and of each port the largest
    ``MOST_BRANCHES`` branches."""
    lines = [line for root in roots[:MOST_ROOTS] for line in (_root(root), *_branches(root.behind, ""))]
    if rest := roots[MOST_ROOTS:]:
        lines.append(f"and {_count(len(rest), 'more root')}, {_ms(sum(r.paused_us for r in rest))} together")
    return "\n".join(lines)


def _root(root: Pause) -> str:
    return f"{root.name}: caused {_times(root)} together"


def _branches(behind: tuple[Pause, ...], margin: str) -> Iterator[str]:
    shown, rest = behind[:MOST_BRANCHES], behind[MOST_BRANCHES:]
    for i, pause in enumerate(shown):
        last = i == len(shown) - 1 and not rest
        own = (
            f" paused by {pause.switch}: {_times(pause)}"
            if pause.pauses
            else ", paused for another root then"
        )
        yield f"{margin}{'└' if last else '├'}─ {pause.name}{own}"
        yield from _branches(pause.behind, margin + ("   " if last else "│  "))
    if rest:
        together = _ms(sum(p.paused_us for p in rest))
        yield f"{margin}└─ and {_count(len(rest), 'more port')}, {together} together"


def _times(pause: Pause) -> str:
    return f"{_count(pause.pauses, 'pause')}, {_ms(pause.paused_us)}"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _ms(us: float) -> str:
    return f"{us / 1e3:.3g} ms"
