"""Tables that programs leave, and the metrics of their times."""

from pathlib import Path

import pytest
from firstlight.claims.measures import value
from firstlight.errors import RunError
from firstlight.linux import rows
from firstlight.runs.result import Result


def left(folder: Path, program: str, name: str, text: str) -> None:
    """Write a file into a program's working directory."""
    (folder / program).mkdir(exist_ok=True)
    (folder / program / name).write_text(text)


def test_rows_of_all_programs_are_one_table(tmp_path: Path) -> None:
    left(tmp_path, "b", "reads.csv", "disk,start_us,bytes\nsda,2000.5,7\n")
    left(tmp_path, "a", "reads.csv", "disk,start_us,bytes\nsdb,10,8\nsdc,30,9\n")
    left(tmp_path, "a", "notes.txt", "no rows\n")
    table = rows.tables(tmp_path, {"flows"}, time_scale=10)
    assert list(table) == ["reads"]
    columns = {name: list(values) for name, values in table["reads"].items()}
    assert columns == {
        "program": ["a", "a", "b"],
        "disk": ["sdb", "sdc", "sda"],
        "start_us": [1.0, 3.0, 200.05],
        "bytes": [8, 9, 7],
    }


def test_a_table_may_have_no_rows(tmp_path: Path) -> None:
    left(tmp_path, "a", "reads.csv", "start_us\n")
    assert list(rows.tables(tmp_path, (), 1)["reads"]) == ["program", "start_us"]


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("flows.csv", "a\n1\n", r"program p, flows\.csv: 'flows' is a table of every result; use another"),
        ("My Rows.csv", "a\n1\n", r"program p, My Rows\.csv: 'My Rows' names no table; use another name"),
        ("reads.csv", "", r"program p, reads\.csv: is not CSV with a line of names"),
        ("reads.csv", "a,b\n1,2,3\n", r"program p, reads\.csv: is not CSV with a line of names"),
        ("reads.csv", "a,b\n1,2\n1", r"program p, reads\.csv: is not CSV with a line of names"),
        ("reads.csv", "program,b\n1,2\n", r"program p, reads\.csv: is not CSV with a line of names"),
    ],
)
def test_a_file_that_is_no_table_is_an_error(tmp_path: Path, name: str, text: str, problem: str) -> None:
    left(tmp_path, "p", name, text)
    with pytest.raises(RunError, match=problem):
        rows.tables(tmp_path, {"flows"}, 1)


def test_programs_agree_on_the_columns_of_a_table(tmp_path: Path) -> None:
    left(tmp_path, "a", "reads.csv", "a\n1\n")
    left(tmp_path, "b", "reads.csv", "b\n1\n")
    with pytest.raises(
        RunError, match=r"program b, reads\.csv: its columns are not those of other programs'"
    ):
        rows.tables(tmp_path, (), 1)


def test_times_of_programs_are_metrics() -> None:
    table = {
        "start_us": [0.0, 100.0, 300.0],
        "duration_us": [100.0, 300.0, 200.0],
        "bytes": [1000, 2000, 3000],
    }
    result = Result({"program_tables": ["reads"]}, {"reads": table, "summary": {"metric": [], "value": []}})
    assert value(result, "reads_p50_us") == 200
    assert value(result, "reads_p99_us") == value(result, "reads_max_us") == 300
    assert value(result, "reads_gbps") == pytest.approx(6000 * 8 / 500e-6 / 1e9)
    assert value(result, "writes_p50_us") is None
