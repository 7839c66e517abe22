"""Demand from CSV files: every form that is read, every mistake with its file, line and column."""

from pathlib import Path

import firstlight as fl
import pandas as pd
import pytest

PLAIN = [[0, 20, 3], [4, 0, 5], [6, 7, 0]]

GOOD = [
    ("plain", "0,20,3\n4,0,5\n6,7,0\n", "bytes"),
    ("no newline at the end, CRLF", "0,20,3\r\n4,0,5\r\n6,7,0", "bytes"),
    ("byte order mark", "\ufeff0,20,3\n4,0,5\n6,7,0\n", "bytes"),
    ("blanks and empty lines", "\n 0, 20 ,3\n\n4,0,5\n6,7,0\n,,\n", "bytes"),
    ("quotes", '"0","20","3"\n4,0,5\n6,7,0\n', "bytes"),
    ("floats and exponents", "0.0,2e1,3.00\n4,-0,5\n6,.7e1,0\n", "bytes"),
    ("cells with units", "0,20B,0.003kB\n4,0B,5\n6,7,0\n", "bytes"),
    ("unit of the file", "0,0.02,3B\n0.004,0,5B\n6B,0.007,0\n", "kB"),
    ("binary unit", "0,0.01953125,3B\n4B,0,5B\n6B,7B,0\n", "KiB"),
]
NAMED = [
    ("header", "a,b,c\n0,20,3\n4,0,5\n6,7,0\n"),
    ("row names", "a,0,20,3\nb,4,0,5\nc,6,7,0\n"),
    ("both", "from,a,b,c\na,0,20,3\nb,4,0,5\nc,6,7,0\n"),
    ("both, no corner", "a,b,c\na,0,20,3\nb,4,0,5\nc,6,7,0\n"),
    ("both, empty corner", ",a,b,c\na,0,20,3\nb,4,0,5\nc,6,7,0\n"),
]


@pytest.mark.parametrize(("text", "unit"), [g[1:] for g in GOOD], ids=[g[0] for g in GOOD])
def test_forms_of_numbers(tmp_path: Path, text: str, unit: str) -> None:
    file = tmp_path / "d.csv"
    file.write_bytes(text.encode())
    demand = fl.read_demand(file, unit)
    assert demand.to_numpy().tolist() == PLAIN
    assert list(demand.index) == list(demand.columns) == ["0", "1", "2"]


@pytest.mark.parametrize("text", [n[1] for n in NAMED], ids=[n[0] for n in NAMED])
def test_names_of_racks(tmp_path: Path, text: str) -> None:
    file = tmp_path / "d.csv"
    file.write_text(text)
    demand = fl.read_demand(file)
    assert demand.to_numpy().tolist() == PLAIN
    assert list(demand.index) == list(demand.columns) == ["a", "b", "c"]


def test_files_written_by_pandas_are_read(tmp_path: Path) -> None:
    for frame in (pd.DataFrame(PLAIN), pd.DataFrame(PLAIN, dtype=float, index=[*"xyz"], columns=[*"xyz"])):
        frame.to_csv(tmp_path / "d.csv")
        assert fl.read_demand(tmp_path / "d.csv").to_numpy().tolist() == PLAIN


def test_bytes_are_exact(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text(f"0,{2**64 - 1}\n9007199254740993,0\n")
    assert fl.read_demand(tmp_path / "d.csv").to_numpy().tolist() == [[0, 2**64 - 1], [2**53 + 1, 0]]


WRONG = [
    ("empty file", "", "is empty"),
    ("only blanks", "\n,,\n", "is empty"),
    ("only names", "a,b\n", "line 1: only names"),
    ("one rack", "0\n", "line 1, column 1: a single row"),
    ("too few rows", "0,1,2\n1,0,2\n", "line 2, column 3: 2 rows of 3 numbers"),
    ("too many rows", "0,1\n1,0\n1,1\n", "line 3, column 2: 3 rows of 2 numbers"),
    ("a long row", "0,1\n1,0,5\n", "line 2, column 3: 3 numbers where the first row has 2"),
    ("a short row", "0,1,2\n1,0\n1,1,0\n", "line 2, column 3: 2 numbers where the first row has 3"),
    ("semicolons", "0;1\n1;0\n", "columns are separated by commas"),
    ("negative", "0,1\n-2,0\n", "line 2, column 1: '-2' is negative"),
    ("negative with a unit", "0,-2kB\n1,0\n", "line 1, column 2: '-2kB' is negative"),
    ("a word", "0,1,2\n1,0,x\n1,2,0\n", "line 2, column 3: 'x' is not a number"),
    ("not a number", "0,1\nnan,0\n", "line 2, column 1: 'nan' is not a number"),
    ("none in the first row", "0,nan\n1,0\n", "line 1, column 2: 'nan' is not a number"),
    ("infinite", "0,1,2\n1,0,inf\n1,2,0\n", "line 2, column 3: 'inf' is not a number"),
    ("unknown unit", "0,1MW\n1,0\n", "line 1, column 2: 'MW' is not a unit of size"),
    ("empty cell", "0,1\n,0\n", "line 2, column 1: is empty"),
    ("empty cell in named rows", "x,a,b\na,0,\nb,1,0\n", "line 2, column 3: is empty"),
    ("half a byte", "0,1.5\n1,0\n", "line 1, column 2: '1.5' bytes is not a whole number of bytes"),
    ("too large", "0,18446744073709551616\n1,0\n", "line 1, column 2: '18446744073709551616' is too large"),
    ("diagonal", "0,1\n1,7\n", "line 2, column 2: 7 from a rack to itself"),
    ("diagonal in named rows", "x,a,b\na,0,1\nb,1,7kB\n", "line 3, column 3: 7kB from a rack to itself"),
    ("names in another order", "x,a,b\nb,0,1\na,1,0\n", "line 1, column 2: column 'a' where the row is 'b'"),
    ("one name too many", "x,a,b,c\na,0,1\nb,1,0\n", "line 1: 4 names where 2 columns follow"),
    ("one name too few", "x,a\na,0,1\nb,1,0\n", "line 1, column 1: column 'x' where the row is 'a'"),
    ("a name twice", "a,0,1\na,1,0\n", "line 2, column 1: rack 'a' is there twice"),
    ("a name twice in the header", "a,a\n0,1\n1,0\n", "line 1, column 2: rack 'a' is there twice"),
    ("open quote", '0,1\n"1,0\n', "line 2: not comma-separated values"),
    ("binary", "\xff\xfe", "cannot be read as text"),
]


@pytest.mark.parametrize(("text", "named"), [w[1:] for w in WRONG], ids=[w[0] for w in WRONG])
def test_errors_name_line_and_column(tmp_path: Path, text: str, named: str) -> None:
    file = tmp_path / "d.csv"
    file.write_bytes(text.encode("latin-1"))
    with pytest.raises(fl.SpecError) as caught:
        fl.read_demand(file)
    assert str(caught.value).startswith(f"{file}: ")
    assert named in str(caught.value)
