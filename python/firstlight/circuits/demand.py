"""Demand between racks: from a file of comma-separated values, a frame, an array or nested lists.

A file has a row for each sending rack and a column for each receiving rack, both in the same order. A cell is
a plain number in the file's unit, or a number with its own unit (``20MB``). A first line and a first column
may hold names. They are recognized by an empty cell in the corner, or by names that do not begin with a
digit.
"""

import csv
import io
import os
import re
from decimal import Decimal
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from firstlight import _core
from firstlight.core import text_of
from firstlight.errors import SpecError

Bytes: TypeAlias = NDArray[np.uint64]
MOST = 2**64 - 1
_PLAIN = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?")
_NUMBER_LIKE = re.compile(r"[+-]?\.?\d")
_Line: TypeAlias = tuple[int, list[str]]


def read_demand(path: str | Path, unit: str = "bytes") -> pd.DataFrame:
    """The demand in a CSV file, in bytes: a frame of uint64 whose rows and columns are named after the racks
    (``"0"``, ``"1"``, ... where the file has no names).

    ``unit`` is that of plain numbers: ``bytes``, or a unit of sizes in experiments, as ``kB`` or ``MiB``.
    Raises :class:`SpecError` with file, line and column (the cell's number, counted from 1).
    """
    return _DemandFile(Path(path), unit).frame()


class _DemandFile:
    """Reads one file."""

    def __init__(self, path: Path, unit: str) -> None:
        self.path = path
        self.unit = unit
        self.factor = self._factor()

    def _factor(self) -> int:
        try:
            return 1 if self.unit == "bytes" else _core.bytes_of(f"1{self.unit}")
        except _core.SpecError as problem:
            raise SpecError(f"{problem}, or bytes") from None

    def wrong(self, line: int, column: int | None, problem: str) -> NoReturn:
        place = f"line {line}" if column is None else f"line {line}, column {column}"
        raise SpecError(f"{self.path}: {place}: {problem}") from None

    def lines(self) -> list[_Line]:
        """The lines that are not empty, with their numbers."""
        if os.path.isdir(self.path):
            raise SpecError(f"{self.path}: is a directory; name a CSV file")
        reader = csv.reader(io.StringIO(text_of(self.path), newline=""), strict=True)
        try:
            read = [(reader.line_num, [cell.strip() for cell in row]) for row in reader]
        except csv.Error as e:
            self.wrong(reader.line_num, None, f"not comma-separated values: {e}")
        return [(line, cells) for line, cells in read if any(cells)]

    def frame(self) -> pd.DataFrame:
        lines = self.lines()
        if not lines:
            raise SpecError(f"{self.path}: is empty; write a row of numbers for each rack")
        header = lines.pop(0) if _is_header(lines[0][1]) else None
        if not lines:
            self.wrong(1, None, "only names; write a row of numbers for each rack")
        named = (header is not None and not header[1][0]) or not any(_numeric(cells[0]) for _, cells in lines)
        skip = 1 if named else 0
        self._square(lines, skip)
        racks = self._names(header, lines, named)
        rows = [self._row(line, cells, skip, i) for i, (line, cells) in enumerate(lines)]
        return pd.DataFrame(np.array(rows, dtype=np.uint64), index=racks, columns=racks)

    def _square(self, lines: list[_Line], skip: int) -> None:
        width = len(lines)
        common = len(lines[0][1]) - skip
        for line, cells in lines:
            found = len(cells) - skip
            if found != common:
                place = min(found, common) + skip + 1
                self.wrong(line, place, f"{found} numbers where the first row has {common}")
        if width < 2:
            self.wrong(lines[0][0], 1, "a single row; a demand is of two racks or more, a row for each")
        if common != width:
            hint = "" if common > 1 else " (columns are separated by commas)"
            rows = f"{width} rows of {common} numbers{hint}: a row and a column for each rack are needed"
            self.wrong(lines[-1][0], common + skip, rows)

    def _names(self, header: _Line | None, lines: list[_Line], named: bool) -> list[str]:
        """The racks' names. Where rows and columns are named, both must be the same."""
        down = [cells[0] for _, cells in lines] if named else None
        across = None if header is None else self._columns(header, down, len(lines))
        names = down or across or [str(rack) for rack in range(len(lines))]
        for rack, name in enumerate(names):
            if name in names[:rack]:
                place = (lines[rack][0], 1) if header is None or down else (header[0], rack + 1)
                self.wrong(*place, f"rack '{name}' is there twice")
        return names

    def _columns(self, header: _Line, down: list[str] | None, racks: int) -> list[str]:
        """The columns' names, checked against those of the rows."""
        line, across = header
        corner = 1 if down and len(across) == racks + 1 else 0
        across = across[corner:]
        if len(across) != racks:
            self.wrong(line, None, f"{len(across)} names where {racks} columns follow")
        for at, (name, row) in enumerate(zip(across, down or across, strict=True), corner + 1):
            if name != row:
                same = "rows and columns are the same racks in the same order"
                self.wrong(line, at, f"column '{name}' where the row is '{row}': {same}")
        return across

    def _row(self, line: int, cells: list[str], skip: int, rack: int) -> list[int]:
        row = [self._amount(line, at, cell) for at, cell in enumerate(cells[skip:], skip + 1)]
        if row[rack] != 0:
            what = f"{cells[rack + skip]} from a rack to itself"
            self.wrong(line, rack + skip + 1, f"{what}; what stays in a rack needs no circuit, write 0")
        return row

    def _amount(self, line: int, column: int, cell: str) -> int:
        if not cell:
            self.wrong(line, column, "is empty; write 0 where there is no demand")
        if cell.startswith("-") and _numeric(cell) and cell.strip("-0."):
            self.wrong(line, column, f"'{cell}' is negative; a demand is 0 or more")
        if not _PLAIN.fullmatch(cell):
            try:
                return _core.bytes_of(cell)
            except _core.SpecError as e:
                why = (
                    str(e) if _numeric(cell) else f"'{cell}' is not a number; write for example 20000 or 20kB"
                )
                self.wrong(line, column, why)
        amount = Decimal(cell) * self.factor
        if amount > MOST:
            self.wrong(line, column, f"'{cell}' is too large")
        if amount != int(amount):
            self.wrong(line, column, f"'{cell}' {self.unit} is not a whole number of bytes; round it")
        return int(amount)


def _numeric(cell: str) -> bool:
    return _NUMBER_LIKE.match(cell) is not None


def _is_header(cells: list[str]) -> bool:
    return len(cells) > 1 and (not cells[0] or not any(_numeric(cell) for cell in cells))


def demand_of(given: ArrayLike | pd.DataFrame) -> tuple[Bytes, tuple[str, ...]]:
    """Bytes from each rack (row) to each (column), and the racks' names; raises :class:`SpecError`."""
    racks: list[str] | None = None
    if isinstance(given, pd.DataFrame):
        racks, columns = ([str(name) for name in axis] for axis in (given.index, given.columns))
        if racks != columns:
            raise SpecError("demand: rows and columns must be named after the same racks in the same order")
    array = _array(given)
    if array.ndim != 2 or array.shape[0] != array.shape[1]:
        shape = " x ".join(map(str, array.shape)) or "a single number"
        raise SpecError(f"demand: {shape}; a row and a column for each rack are needed")
    if array.dtype.kind not in "iuf":
        raise SpecError(f"demand: numbers of bytes are needed, not {array.dtype}")
    legal = array >= 0
    if array.dtype.kind == "f":
        legal &= (array == np.floor(array)) & (array < 2.0**64)
    if not legal.all():
        row, column = np.argwhere(~legal)[0]
        value = array[row, column]
        raise SpecError(f"demand[{row}, {column}] = {value}: a whole number of bytes, 0 or more, is needed")
    whole: Bytes = np.ascontiguousarray(array, dtype=np.uint64)
    return whole, tuple(racks or map(str, range(len(whole))))


def _array(given: ArrayLike | pd.DataFrame) -> NDArray[Any]:
    try:
        array: NDArray[Any] = np.asarray(given)
    except ValueError:
        raise SpecError(
            "demand: rows of different lengths; a row and a column for each rack are needed"
        ) from None
    return array
