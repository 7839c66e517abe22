"""The Linux hosts' part of a README's tables, kept where a reproduction has run on simulated hosts only.

Of a claim at several time scales these are columns: :meth:`Kept.beside` puts their numbers beside the rows
of simulated hosts, so that differences from Linux are those of the new rows. Of any other claim they are
lines of their own, with ``Linux`` in the first column: :meth:`Kept.joined` puts each after the line that it
followed.
"""

import itertools
import re
from collections.abc import Mapping
from dataclasses import replace

from firstlight.claims.rows import Row
from firstlight.pages.folding import unfolded
from firstlight.pages.lines import Line, Tables, title_of

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
        self.tables = tables_of(lines)
        """The tables by their titles, each with its head first."""

    def beside(self, row: Row) -> Row:
        """A row of simulated hosts with the number that Linux hosts had there, if it is known."""
        head, *lines = self.tables.get(title_of(row), [()])
        column = f"Linux x{row.time_scale}"
        if row.hosts != "simulated" or column not in head:
            return row
        cells = [line[head.index(column)] for line in lines if line[0] == row.point]
        return replace(row, linux=float(cells[0])) if cells and cells[0] != "-" else row

    def joined(self, tables: Mapping[str, list[Line]]) -> Tables:
        """Tables by their titles, with the lines of Linux hosts that they had, and with those tables that
        Linux hosts alone had. A table with another column than now has no such lines."""
        found = {title: self._with_linux(title, lines) for title, lines in tables.items()}
        titles = list(found)
        for before, title in itertools.pairwise(["", *self.tables]):
            if title not in found and all(_is_linux(line) for line in self.tables[title][1:]):
                titles.insert(titles.index(before) + 1 if before in titles else 0, title)
                found[title] = self.tables[title]
        return {title: found[title] for title in titles}

    def _with_linux(self, title: str, lines: list[Line]) -> list[Line]:
        before, *kept = self.tables.get(title, [()])
        if not set(before) <= set(lines[0]):
            return lines
        joined = list(lines)
        place = 1
        for line in kept:
            cells = dict(zip(before, line, strict=True))
            found = [i for i, other in enumerate(joined) if other[0] == line[0]]
            if found:
                place = found[0] + 1
            elif _is_linux(line):
                joined.insert(place, tuple(cells.get(name, "-") for name in lines[0]))
                place += 1
        return joined


def _is_linux(line: Line) -> bool:
    return LINUX in line[0].split(", ")


def tables_of(lines: list[str]) -> Tables:
    """The tables of Markdown without its limit of width, each with its head first, by the titles above
    them."""
    found: Tables = {}
    title = ""
    for line in lines:
        if line.startswith("|"):
            if not set(line) <= set("|-: "):
                found.setdefault(title, []).append(tuple(cell.strip() for cell in line.strip("|").split("|")))
        elif line and not line.startswith(("- ", "`")):
            title = line.removesuffix(":")
    return found
