"""Markdown whose lines are at most 120 characters wide, and its reading.

A table that would be wider has letters in place of its longest texts, and below it a list of what they stand
for.
"""

import re
import string
import textwrap
from collections.abc import Mapping, Sequence

from firstlight.pages.lines import Line

WIDTH = 120
LETTER = re.compile(r"- (\(\w\)): (.*)")


def folded(text: str, indent: str = "") -> list[str]:
    """A paragraph as lines; all but the first begin with ``indent``."""
    return textwrap.wrap(
        text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def table(lines: Sequence[Line], texts: int) -> list[str]:
    """A table, its head first; the first ``texts`` columns are texts, the others numbers."""
    head, *rows = lines
    wide = [line if line is head else line[:texts] for line in lines if len(_row(line, {})) > WIDTH]
    long: dict[str, str] = {}
    for cell in sorted({cell for line in wide for cell in line}, key=lambda cell: (-len(cell), cell)):
        if all(len(_row(line, long)) <= WIDTH for line in lines):
            break
        long[cell] = "(a)"
    order = dict.fromkeys(cell for line in lines for cell in line if cell in long)
    letters = {cell: f"({letter})" for cell, letter in zip(order, string.ascii_lowercase, strict=False)}
    legend = [line for cell, letter in letters.items() for line in folded(f"- {letter}: {cell}", "  ")]
    rule = f"|{'---|' * texts}{'--:|' * (len(head) - texts)}"
    body = [_row(head, letters), rule, *(_row(row, letters) for row in rows)]
    return [*body, "", *legend] if legend else body


def _row(line: Line, letters: Mapping[str, str]) -> str:
    return f"| {' | '.join(letters.get(cell, cell) for cell in line)} |"


def unfolded(text: str) -> list[str]:
    """Such Markdown without the limit: one line for each paragraph and item, no letters in tables."""
    paragraphs: list[str] = []
    for line in text.splitlines():
        if line.startswith(("|", "- ", "`")) or not line or not paragraphs or paragraphs[-1][:1] in ("", "|"):
            paragraphs.append(line)
        else:
            paragraphs[-1] += f" {line.strip()}"
    lines: list[str] = []
    table = 0
    for line in paragraphs:
        if letter := LETTER.fullmatch(line):
            lines[table:] = [row.replace(f"| {letter[1]} |", f"| {letter[2]} |") for row in lines[table:]]
            continue
        if line.startswith("|") and not (lines and lines[-1].startswith("|")):
            table = len(lines)
        lines.append(line)
    return lines
