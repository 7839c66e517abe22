"""Numbers in the prose of a claim's README that have a row in its tables: they are compared with the row.

A comment at the README's end, ``<!-- rows ... -->``, has a line for each: the number as the prose has it, and
the places in the tables that it may be of. :func:`found` makes these lines from a README whose prose is true.
A page of the manual has no tables of its own: its numbers are those of the READMEs ``beside`` it.
A person writes the lines of whole and of short numbers, and those of quotients, with two places:
``1.06 = PLACE``, below it ``  divided by PLACE``.
"""

import re
from collections.abc import Iterator

from firstlight.pages.folding import unfolded
from firstlight.pages.kept import tables_of
from firstlight.pages.lines import Line

GENERATED = re.compile(r"<!-- (?:measured|verdicts \w+) -->.*?<!-- end -->", re.DOTALL)
MEASURED = re.compile(r"<!-- measured -->\n(.*?)<!-- end -->", re.DOTALL)
ROWS = re.compile(r"<!-- rows\n(.*?)-->\n?", re.DOTALL)
NUMBER = re.compile(r"(?<![\w.,+-])\d+(?:,\d{3})*(?:\.\d+)?(?!\w)(?![.,]\d)")
DIGITS = 3
"""A number with fewer digits, or a whole number, is as likely of something else."""
PLACES = 4
"""A number that stands in more places of the tables says of none."""
QUOTIENT = "\n  divided by "
"""The text between the two places of a quotient."""


def cells(readme: str) -> dict[str, str]:
    """The numbers of the measured tables by their places: ``8a | 32 packets | ... | Linux x20``. Of a table
    by curve: ``mean wait (us) | newreno | Base``."""
    return {
        place: cell
        for block in MEASURED.findall(readme)
        for title, (head, *lines) in tables_of(unfolded(block)).items()
        for line in lines
        for place, cell in _cells(title, head, line)
    }


def _cells(title: str, head: Line, line: Line) -> Iterator[tuple[str, str]]:
    """The numbers of a table's line with their places; not the differences, which derive from them."""
    figure, _, metric = title.partition(": ")
    keys = [figure, line[0], metric] if head[0] == "point" else [title, line[0]]
    for name, cell in zip(head[1:], line[1:], strict=True):
        if not name.startswith(("diff", "95")):
            yield " | ".join([*keys, name]), cell


def prose(readme: str) -> str:
    """The text that a person wrote, without generated parts, tables, code and quotations of the command
    line."""
    text = ROWS.sub("", GENERATED.sub("", readme))
    text = "\n".join(line for line in text.splitlines() if not line.startswith("|"))
    return re.sub(r"`[^`]*`", "", text)


def found(readme: str, beside: str = "") -> dict[str, list[str]]:
    """The numbers of the prose that have rows, with their places."""
    every = cells(readme + beside)
    long = [
        n for n in NUMBER.findall(prose(readme)) if "." in n and len(n.replace(".", "").lstrip("0")) >= DIGITS
    ]
    places = {n: [place for place, cell in every.items() if _equal(n, cell)] for n in dict.fromkeys(long)}
    return {n: its for n, its in places.items() if 0 < len(its) <= PLACES}


def _equal(number: str, cell: str) -> bool:
    """Whether a number of the prose is a cell's, rounded."""
    half = 0.5 * 10 ** -len(number.partition(".")[2]) + 1e-9
    return bool(re.fullmatch(r"[\d.]+", cell)) and abs(float(cell) - float(number.replace(",", ""))) <= half


def _value(every: dict[str, str], place: str) -> str:
    """The number in the tables at a place, or the quotient of the numbers at two places."""
    values = [every.get(one, "no row") for one in place.split(QUOTIENT)]
    if len(values) == 1:
        return values[0]
    if not all(re.fullmatch(r"[\d.]+", value) for value in values) or float(values[1]) == 0:
        return QUOTIENT.join(values)
    return f"{float(values[0]) / float(values[1]):.6f}"


def linked(readme: str) -> dict[str, list[str]]:
    """The numbers that the comment lists, with their places."""
    block = ROWS.search(readme)
    lines = [line.partition(" = ") for line in re.split(r"\n(?! )", block[1].rstrip())] if block else []
    links: dict[str, list[str]] = {}
    for number, _, place in lines:
        links.setdefault(number, []).append(place)
    return links


def comment(links: dict[str, list[str]]) -> str:
    """The comment that lists numbers with their places."""
    lines = [f"{number} = {place}\n" for number, places in links.items() for place in places]
    return f"<!-- rows\n{''.join(lines)}-->\n" if lines else ""


def with_links(readme: str, beside: str = "") -> str:
    """A README whose comment lists the numbers that it listed, and those that have rows now."""
    known = {n: places for n, places in linked(readme).items() if n in NUMBER.findall(prose(readme))}
    text = ROWS.sub("", readme).rstrip("\n") + "\n"
    more = comment({**found(readme, beside), **known})
    return f"{text}\n{more}" if more else text


def problems(readme: str, beside: str = "") -> list[str]:
    """Numbers of a README's prose that differ from its tables, each in a sentence."""
    every, numbers, links = cells(readme + beside), NUMBER.findall(prose(readme)), linked(readme)
    wrong = [
        f"{n} has rows that the comment does not list: `make docs`"
        for n in found(readme, beside)
        if n not in links
    ]
    for number, places in links.items():
        values = [_value(every, place) for place in places]
        if number not in numbers:
            wrong.append(f"{number} is listed and stands nowhere in the prose: `make docs`")
        elif not any(_equal(number, value) for value in values):
            wrong.append(f"{number} is no longer the row's: {places[0]} is {values[0]}")
    return wrong
