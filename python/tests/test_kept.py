"""A README's rows of Linux hosts stay when simulated hosts alone are run again."""

from firstlight.claims.rows import Row
from firstlight.pages.kept import Kept
from firstlight.pages.lines import SCALE_COLUMNS, Line, by_metric, filled, scale_lines

SCALES = """\
`firstlight reproduce x --quick --hosts linux`, version simulated hosts 2.0, Linux hosts 1.0 and 1.1:

- Etalon Fig. 9, Linux hosts, scale 20, against paper: mean absolute difference utilization 3.1 points
- Etalon Fig. 9, simulated hosts, scale 20, against paper: mean absolute difference utilization 2.9 points

9a: utilization (%):

| point | paper | Linux x20 | diff | simulated x20 | diff | Linux x1 | simulated x1 | diff |
|---|--:|--:|--:|--:|--:|--:|--:|--:|
| 0 us | 49.2 | 48.0 | -1.20 | 48.3 | -0.90 | 46.7 | 46.6 | -0.10 |
| 300 us | 60.3 | - | - | 63.3 | +3.00 | - | 62.7 | - |
"""
NUMBERS = """\
`firstlight reproduce x --quick --hosts linux`, version 1.0:

HDFS: p99 (us):

| point | ours |
|---|--:|
| A | 10.0 |
| Linux, A | 11.0 |
| Linux, B | 12.0 |
| B | 13.0 |

HDFS: p99, ratio (x):

| point | paper | ours |
|---|--:|--:|
| A / B, Linux | 9.00 | 4.00 |

HDFS: jobs:

| point | ours |
|---|--:|
| A | 5 |
"""
GRID = """\
`firstlight reproduce x --quick --hosts linux`, version 1.0:

Mean wait (us):

| tcp | Base | PFC |
|---|--:|--:|
| reno | 12.3 | - |
| reno, Linux | 13.4 | 5.00 |

Largest wait (us):

| tcp | Base | PFC |
|---|--:|--:|
| reno, Linux | 99.0 | 98.0 |
"""


def row(point: str, scale: int, ours: float) -> Row:
    return Row("9a", point, "util", "%", 49.2 if point == "0 us" else 60.3, ours, scale, label="utilization")


def test_columns_of_linux_hosts_are_kept_beside_new_numbers() -> None:
    kept = Kept(SCALES)
    assert kept.version == "1.0 and 1.1"
    assert [line[:30] for line in kept.agreements] == ["- Etalon Fig. 9, Linux hosts, "]
    new = [row("0 us", 20, 50.2), row("0 us", 1, 40.0), row("300 us", 20, 60.0), row("600 us", 20, 70.0)]
    first, second, third = scale_lines([kept.beside(r) for r in new])
    assert dict(zip(SCALE_COLUMNS[3:5], first[3:5], strict=True)) == {"paper": "49.2", "Linux x20": "48.0"}
    assert first[5:] == ("-1.20", "50.2", "+1.00", "46.7", "40.0", "-6.70")
    assert (second[4], third[4]) == ("-", "-"), "not known, and not there before"
    linux = Row("9a", "0 us", "util", "%", 49.2, 47.0, 20, hosts="linux", label="utilization")
    assert kept.beside(linux).linux is None


def test_lines_of_linux_hosts_are_kept_where_they_stood() -> None:
    kept = Kept(NUMBERS)
    columns = ("figure", "point", "metric", "paper", "ours", "95 %", "diff", "diff %")
    new = [("HDFS", p, "p99 (us)", "-", n, "-", "-", "-") for p, n in (("A", "7.00"), ("C", "8.00"))]
    tables = by_metric(columns, new)
    joined = kept.joined(tables)
    assert list(joined) == ["HDFS: p99 (us)", "HDFS: p99, ratio (x)"], "that of Linux hosts alone stays"
    assert filled(joined["HDFS: p99 (us)"]) == [
        ("point", "ours"),
        ("A", "7.00"),
        ("Linux, A", "11.0"),
        ("Linux, B", "12.0"),
        ("C", "8.00"),
    ], "B, which is no longer run, is gone"
    assert joined["HDFS: p99, ratio (x)"][1] == ("A / B, Linux", "9.00", "4.00")
    other: dict[str, list[Line]] = {"HDFS: p99 (us)": [("point", "mean"), ("A", "7.00")]}
    assert kept.joined(other)["HDFS: p99 (us)"] == other["HDFS: p99 (us)"], "other columns"
    assert Kept("").joined(tables) == tables
    assert Kept("").version == ""
    assert Kept(NUMBERS.replace(" --hosts linux", "")).version == ""


def test_each_table_by_curve_keeps_its_own_lines() -> None:
    kept = Kept(GRID)
    new: list[Line] = [("tcp", "Base", "PFC"), ("reno", "1.00", "2.00")]
    joined = kept.joined({title: new for title in ("Mean wait (us)", "Largest wait (us)", "Another (us)")})
    assert joined["Mean wait (us)"] == [*new, ("reno, Linux", "13.4", "5.00")]
    # The line that it followed is the head.
    assert joined["Largest wait (us)"][1] == ("reno, Linux", "99.0", "98.0")
    assert joined["Another (us)"] == new
