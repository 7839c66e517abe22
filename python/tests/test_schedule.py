"""Schedules of the circuit switch: the API, and ``firstlight schedule`` as a user types it."""

import json
import re
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import firstlight as fl
import numpy as np
import pandas as pd
import pytest
from conftest import Command
from firstlight.circuits import tables
from firstlight.figures.schedules import rack_colors, schedule_figure
from firstlight.pages.study import Study

RING = [[0, 500_000, 100], [100, 0, 500_000], [500_000, 100, 0]]
"""Bytes. A day of 40 us at 80 Gb/s carries 400,000."""
FRAME = {"week": "100us", "night": "10us", "least_day": "20us"}
WORDS = ["--week", "100us", "--night", "10us", "--day", "20us"]
EXAMPLES = Path(__file__).resolve().parents[2] / "experiments" / "etalon" / "demand"


def strobe(demand: Any = RING, **changes: str) -> fl.Schedule:
    return fl.schedule(demand, "strobe", **{**FRAME, **changes})


def random_demand(racks: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    demand = np.random.default_rng(3).integers(0, 10**6, (racks, racks))
    np.fill_diagonal(demand, 0)
    return demand


def test_a_strobe_of_three_by_hand() -> None:
    s = strobe()
    assert [(d.begins_us, d.length_us, d.night_ps, d.served_bytes) for d in s.days] == [
        (10, 40, 10_000_000, 300),
        (60, 40, 10_000_000, 1_200_000),
    ]
    assert s.days[0].pairs == [(0, 2), (1, 0), (2, 1)]
    assert s.calendar["matching"].tolist() == ["0>2 1>0 2>1", "0>1 1>2 2>0"]
    assert s.share_served == 1_200_300 / 1_500_300
    assert (s.duty_cycle, s.rack_duty, s.configurations) == (0.8, 0.8, 2)
    assert s.left.tolist() == [[0, 100_000, 0], [0, 0, 100_000], [100_000, 0, 0]]
    assert (s.busiest_left_bytes, s.packet_time_ps, s.packet_fits) == (100_000, 80_000_000, True)
    assert s.week_ps == 100_000_000
    assert s.run_time_ns > 0


def test_the_packet_network_fits_if_it_carries_the_rest_within_the_week() -> None:
    assert strobe(packet_rate="8Gbps").packet_fits
    slow = strobe(packet_rate="7.9Gbps")
    assert not slow.packet_fits
    assert slow.packet_time_ps > slow.week_ps


def test_the_busiest_rack_may_be_one_that_receives() -> None:
    demand = [[0, 0, 600_000], [0, 0, 700_000], [0, 0, 0]]
    assert strobe(demand).busiest_left_bytes == 200_000 + 300_000


def test_idle_racks_reduce_the_duty_of_a_rack() -> None:
    s = strobe()
    first, last = s.days
    lone = replace(first, destinations=np.array([2, -1, -1]))
    idle = replace(first, destinations=np.array([-1, -1, -1]))
    assert replace(s, days=(lone, last)).duty_cycle == 0.8
    assert replace(s, days=(lone, last)).rack_duty == pytest.approx((40 + 3 * 40) / 300)
    assert replace(s, days=(idle, last)).duty_cycle == 0.4
    assert replace(s, days=(idle, last)).configurations == 1
    assert s.matching(idle) == "idle"


@pytest.mark.parametrize("name", fl.schedulers())
def test_every_scheduler_fills_the_week_and_serves_no_more_than_the_demand(name: str) -> None:
    s = fl.schedule(random_demand(6), name, week="1ms", night="10us", least_day="25us")
    assert s.scheduler == name
    assert s.week_ps == 1_000_000_000
    assert all(day.night_ps == 10_000_000 and day.length_ps >= 25_000_000 for day in s.days)
    assert (s.served <= s.demand).all()
    assert s.served.sum() == sum(day.served_bytes for day in s.days) > 0
    assert 0 < s.rack_duty <= s.duty_cycle < 1
    for day in s.days:
        to = day.destinations[day.destinations >= 0]
        assert len(set(to.tolist())) == len(to)
        assert all(source != destination for source, destination in day.pairs)


def calendar(schedule: fl.Schedule) -> list[tuple[int, int, str]]:
    return [(day.night_ps, day.length_ps, schedule.matching(day)) for day in schedule.days]


def test_each_name_is_a_scheduler_of_its_own() -> None:
    frame = {"week": "1ms", "night": "10us", "least_day": "25us"}
    weeks = [calendar(fl.schedule(random_demand(6), name, **frame)) for name in fl.schedulers()]
    assert all(week not in weeks[:at] for at, week in enumerate(weeks))


@pytest.mark.parametrize("name", [name for name in fl.schedulers() if name != "strobe"])
def test_rows_send_and_columns_receive(name: str) -> None:
    """100,000 bytes are 10 us of a circuit; the only day gets the whole week."""
    s = fl.schedule([[0, 0, 0], [0, 0, 100_000], [0, 0, 0]], name, **FRAME)
    assert [(day.length_us, day.served_bytes, (1, 2) in day.pairs) for day in s.days] == [(90, 100_000, True)]
    assert s.served.tolist() == [[0, 0, 0], [0, 0, 100_000], [0, 0, 0]]


def test_schedulers_use_the_rates() -> None:
    """Solstice stops when packets can carry the rest, so a faster packet network leaves it fewer days; a
    slower circuit serves less in the same days."""
    days = [
        len(fl.schedule(RING, "solstice", **FRAME, packet_rate=rate).days) for rate in ("1Mbps", "10Gbps")
    ]
    assert days == [2, 1]
    assert strobe(circuit_rate="40Gbps").served.tolist() == [
        [0, 200_000, 100],
        [100, 0, 200_000],
        [200_000, 100, 0],
    ]
    assert [day.served_bytes for day in strobe(circuit_rate="40Gbps").days] == [300, 600_000]


def test_days_share_what_a_pair_has() -> None:
    """A pair that meets in two days: the first carries what it can, the second the rest."""
    assert strobe([[0, 500_000], [0, 0]], week="55us").days[0].served_bytes == 450_000
    twice = fl.circuits.schedule._days(
        [(0, 40_000_000, np.array([1, -1])), (0, 40_000_000, np.array([1, -1]))],
        np.array([[0, 500_000], [0, 0]], dtype=np.uint64),
        80 * 10**9,
    )
    assert [day.served_bytes for day in twice] == [400_000, 100_000]


def test_arrays_frames_and_lists_are_one_demand() -> None:
    names = ["a", "b", "c"]
    frame = pd.DataFrame(RING, index=names, columns=names)
    for given in (np.array(RING), np.array(RING, dtype=float), np.array(RING, order="F"), frame):
        assert (strobe(given).served == strobe().served).all()
    assert strobe().racks == ("0", "1", "2")
    assert strobe(frame).racks == ("a", "b", "c")
    assert strobe(frame).calendar["matching"][0] == "a>c b>a c>b"


def test_a_demand_of_zeros_has_a_schedule() -> None:
    s = strobe(np.zeros((3, 3), dtype=int))
    assert np.isnan(s.share_served)
    assert s.summary["share_served"] is None
    assert s.packet_time_ps == 0
    assert s.packet_fits
    assert schedule_figure([s]).png


@pytest.mark.parametrize(
    ("demand", "named"),
    [
        ([[0, 1], [1]], "rows of different lengths"),
        ([[0, 1, 2], [1, 0, 2]], "2 x 3"),
        (5, "a single number"),
        ([], "0; a row and a column"),
        ([[0]], "2 to 4096 racks, not of 1"),
        ([[0, -1], [1, 0]], r"demand\[0, 1\] = -1"),
        ([[0, 1.5], [1, 0]], r"demand\[0, 1\] = 1.5"),
        ([[0, 1], [float("nan"), 0]], r"demand\[1, 0\] = nan"),
        ([[0, 1], [1e30, 0]], r"demand\[1, 0\] = 1e\+30"),
        ([[0, 1], [1, 2]], "rack 1 has 2 bytes for itself"),
        ([["0", "1"], ["1", "0"]], "numbers of bytes are needed"),
        (pd.DataFrame(RING, columns=["a", "b", "c"]), "the same racks in the same order"),
    ],
)
def test_wrong_demands(demand: Any, named: str) -> None:
    with pytest.raises(fl.SpecError, match=named):
        strobe(demand)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"week": "2"}, "week: '2' has no unit"),
        ({"night": "20Gbps"}, "night: 'Gbps' is not a unit of time"),
        ({"least_day": "many"}, "least_day: 'many'"),
        ({"circuit_rate": "80us"}, "circuit_rate: 'us' is not a unit of rate"),
        ({"packet_rate": "0Gbps"}, "packet_rate: a link of zero rate"),
        ({"week": "20us"}, "a week of 20us has no room"),
        ({"scheduler": "strob"}, "scheduler 'strob': there is none; there are 'strobe'"),
    ],
)
def test_wrong_parameters_are_named(changes: dict[str, str], named: str) -> None:
    words = {**FRAME, "scheduler": "strobe", **changes}
    with pytest.raises(fl.SpecError, match=named):
        fl.schedule(RING, **words)


@pytest.mark.parametrize("ns", [0.5, 1, 999.6, 1873, 35_412, 2_500_000, 7.2e9])
def test_run_times_are_printed_as_experiments_read_them(ns: float) -> None:
    s = fl.schedule([[0, 1], [1, 0]], "strobe", night=tables.span(ns), week="100s")
    assert s.days[0].night_ps == pytest.approx(ns * 1000, rel=0.005)


def test_quantities_are_printed_short() -> None:
    assert [tables.size(n) for n in (0, 999, 1000, 20_440_000, 7 * 10**15)] == [
        "0 B",
        "999 B",
        "1 kB",
        "20.44 MB",
        "7000 TB",
    ]
    assert (tables.percent(0.9342), tables.percent(float("nan"))) == ("93.4 %", "-")


def write_ring(folder: Path) -> Path:
    file = folder / "ring.csv"
    file.write_text("".join(",".join(map(str, row)) + "\n" for row in RING))
    return file


def test_the_command_prints_a_calendar_and_stores_it(command: Command, tmp_path: Path) -> None:
    write_ring(tmp_path)
    done = command("schedule", "ring.csv", "--scheduler", "strobe", *WORDS, "--out", "kept")
    assert done.returncode == 0, done.stderr
    assert re.search(r"2 +60 +40 +1.2 MB +0>1 1>2 2>0", done.stdout)
    assert "80.0 % of 1.5 MB" in done.stdout
    assert "takes 80us, which fits into the week of 100us" in done.stdout
    [line] = [line for line in done.stdout.splitlines() if line.startswith("control.compute")]
    assert re.fullmatch(r"[\d.]+(ns|us|ms)", tomllib.loads(line)["control"]["compute"])
    assert sorted(p.name for p in (tmp_path / "kept").iterdir()) == [
        "schedule.json",
        "schedule.png",
        "schedule.svg",
    ]
    stored = json.loads((tmp_path / "kept" / "schedule.json").read_text())
    assert stored["demand"] == RING
    assert stored["frame"]["week"] == "100us"
    [one] = stored["schedules"]
    assert one["share_served"] == strobe().share_served
    assert [day["destinations"] for day in one["days"]] == [[2, 0, 1], [1, 2, 0]]
    assert one["days"][1]["begins_ps"] == 60_000_000


def test_the_command_passes_every_option(command: Command, tmp_path: Path) -> None:
    write_ring(tmp_path)
    words = ["--circuit", "40Tbps", "--packet", "5Tbps", "--unit", "kB", "--scheduler", "solstice"]
    done = command("schedule", "ring.csv", *WORDS, *words, "--out", "kept")
    assert done.returncode == 0, done.stderr
    stored = json.loads((tmp_path / "kept" / "schedule.json").read_text())
    rates = {"circuit_rate": "40Tbps", "packet_rate": "5Tbps"}
    assert stored["frame"] == {**FRAME, **rates}
    expected = fl.schedule(np.array(RING) * 1000, "solstice", **FRAME, **rates).as_dict()
    [one] = stored["schedules"]
    assert {**one, "run_time_ns": 0} == {**expected, "run_time_ns": 0}


def test_all_schedulers_side_by_side(command: Command, tmp_path: Path) -> None:
    done = command("schedule", EXAMPLES / "ring.csv", "--week", "6ms", "--out", "kept")
    assert done.returncode == 0, done.stderr
    stored = json.loads((tmp_path / "kept" / "schedule.json").read_text())
    assert [one["scheduler"] for one in stored["schedules"]] == fl.schedulers()
    assert done.stdout.count("control.compute") == len(fl.schedulers())
    assert "does not fit" in done.stdout or "longer than the week of 6ms" in done.stdout


def test_the_table_marks_the_best(capsys: pytest.CaptureFixture[str]) -> None:
    from firstlight.cli.console import console

    good = strobe()
    poor = replace(good, scheduler="poor", served=good.served // 2)
    tables.print_comparison(console(wide=True), [poor, good, replace(good, scheduler="equal")])
    lines = capsys.readouterr().out.splitlines()
    marked = [line.split()[0] for line in lines if re.match(r" *\w+ \* ", line)]
    assert marked == ["strobe", "equal"]
    [worse] = [line for line in lines if line.strip().startswith("poor")]
    assert "240us !" in worse
    assert "! longer than the week of 100us" in lines[-1]


def test_schedulers_without_a_schedule_are_listed() -> None:
    demand = pd.DataFrame(RING)
    names = ["strobe", "other"]
    told = Study.of(demand, names, source="ring.csv", frame=FRAME, lenient=True)
    assert [one.scheduler for one in told.schedules] == ["strobe"]
    assert "scheduler 'other'" in told.refused["other"]
    with pytest.raises(fl.SpecError, match=r"ring\.csv: scheduler 'other'"):
        Study.of(demand, names, source="ring.csv", frame=FRAME, lenient=False)
    with pytest.raises(fl.SpecError, match="has no room"):
        Study.of(demand, ["strobe"], source="x", frame={**FRAME, "week": "9us"}, lenient=True)


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["missing.csv"], "missing.csv: no such file"),
        (["."], "is a directory"),
        (["ring.csv", "--scheduler", "strob"], "--scheduler strob: no such scheduler; write one of strobe"),
        (["ring.csv", "--week", "2"], "error: --week: '2' has no unit"),
        (["ring.csv", "--day", "X"], "error: --day: 'X' is not a time"),
        (["ring.csv", "--circuit", "X", "--scheduler", "bvn"], "error: --circuit: 'X' is not a rate"),
        (["ring.csv", "--packet", "0Gbps"], "error: --packet: a link of zero rate"),
        (["ring.csv", "--week", "100us"], "ring.csv: a "),
        (["ring.csv", "--unit", "parsecs"], "'parsecs' is not a unit of size: use TB, GB"),
        (["ring.csv", "--out", "ring.csv"], "not a result"),
        ([], "Missing argument"),
    ],
)
def test_wrong_arguments_are_named(command: Command, tmp_path: Path, words: list[str], named: str) -> None:
    write_ring(tmp_path)
    done = command("schedule", *words, "--night", "100us")
    assert done.returncode == 2
    assert named in done.stderr
    assert "Traceback" not in done.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["ring.csv"]


def test_a_schedule_replaces_a_schedule_and_nothing_else(command: Command, tmp_path: Path) -> None:
    write_ring(tmp_path)
    for week in ("100us", "200us"):
        done = command("schedule", "ring.csv", *WORDS, "--week", week, "--out", "kept")
        assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "kept" / "schedule.json").read_text())["frame"]["week"] == "200us"
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").write_text("mine")
    assert command("schedule", "ring.csv", "--out", "other").returncode == 2
    assert sorted(p.name for p in tmp_path.iterdir()) == ["kept", "other", "ring.csv"]


def test_the_picture_has_its_labels() -> None:
    schedule = strobe()
    svg = schedule_figure([schedule, schedule]).svg
    for words in ("Time (us)", "From rack", "To rack", "Demand", "strobe: 80.0 % on circuits"):
        assert words in svg
    assert svg.count("strobe: 80.0 % on circuits") == 2


def test_every_rack_has_a_colour_of_its_own() -> None:
    for racks in (2, 8, 9, 64):
        assert len(set(rack_colors(racks))) == racks


def test_every_scheduler_stands_in_its_page() -> None:
    page = (EXAMPLES.parents[2] / "docs" / "models" / "circuit-schedulers.md").read_text()
    for name in fl.schedulers():
        assert f"| `{name}` |" in page


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.csv")), ids=lambda f: f.name)
def test_the_examples_are_demands(file: Path) -> None:
    demand = fl.read_demand(file).to_numpy()
    assert len(demand) >= 8
    assert demand.sum() > 0
