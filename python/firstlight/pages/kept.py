"""The Linux hosts' part of a README's table, which is kept where a reproduction has run on simulated hosts
only.

Of a claim at several time scales these are columns: :meth:`Kept.beside` puts their numbers beside the rows
of simulated hosts, so that differences from Linux are those of the new rows. Of any other claim they are
lines of their own, with ``Linux`` in the point: :meth:`Kept.joined` puts each after the line that it
followed.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from firstlight.claims.rows import Row
from firstlight.pages.folding import unfolded
from firstlight.pages.lines import Line, words

LINUX = "Linux"
VERSIONS = re.compile(r"version (?:.*Linux hosts )?(.+):$")


class Kept:
    """The Linux hosts' part of a README's block of measurements."""

    def __init__(self, block: str) -> None:
        """Read a block; an empty one has nothing to keep."""
        lines = unfolded(block)
        command = lines[0] if lines else ""
        match = VERSIONS.search(command) if "--hosts linux" in command else None
        self.version = match[1] if match else ""
        """The version that ran on Linux hosts; empty if none did."""
        self.agreements = [line for line in lines if line.startswith("- ") and ", Linux hosts, " in line]
        """How well Linux hosts agree with the paper, a line each."""
        self._tables = _tables(lines)

    def beside(self, row: Row) -> Row:
        """A row of simulated hosts with the number that Linux hosts had there, if it is known."""
        place = (row.figure, row.point, words(row))
        head, *lines = self._tables.get("", [()])
        column = f"Linux x{row.time_scale}"
        if row.hosts != "simulated" or column not in head:
            return row
        cells = [line[head.index(column)] for line in lines if line[:3] == place]
        return replace(row, linux=float(cells[0])) if cells and cells[0] != "-" else row

    def joined(self, title: str, lines: Sequence[Line]) -> list[Line]:
        """The lines of a table, the head first, with those of Linux hosts that it had; ``title`` stands above
        it. A table with other columns than before has none of them."""
        before = self._tables.get(title, [()])
        if before[0] != lines[0]:
            return list(lines)
        joined = list(lines)
        place = 0
        keys = 3 if lines[0][0] == "figure" else 1
        for line in before:
            found = [i for i, other in enumerate(joined) if other[:keys] == line[:keys]]
            if found:
                place = found[0] + 1
            elif LINUX in ", ".join(line[:keys]).split(", "):
                joined.insert(place, line)
                place += 1
        return joined


def _tables(lines: Sequence[str]) -> dict[str, list[Line]]:
    """The tables of a block, each with its head first, by the title above it; one without title has an empty
    one."""
    found: dict[str, list[Line]] = {}
    title = ""
    for line in lines:
        if line.startswith("|"):
            if not set(line) <= set("|-: "):
                found.setdefault(title, []).append(tuple(cell.strip() for cell in line.strip("|").split("|")))
        elif line and not line.startswith(("- ", "`")):
            title = line
    return found
