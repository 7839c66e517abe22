"""Divergences against numbers worked out by hand, and the page of a comparison; no kernel is needed."""

import json
from pathlib import Path
from typing import Any

import firstlight as fl
import numpy as np
import pytest
from conftest import Command
from firstlight.pages import report
from firstlight.runs import compare as comparison
from firstlight.runs import divergence
from firstlight.runs.result import Result
from test_reproduce import opens_offline

WEEK = {"index": [0], "night_us": [20.0], "start_us": [20.0], "end_us": [200.0], "matching": ["0->1 1->0"]}


def result_of(late: float = 0.0, without: str = "", **tables: dict[str, Any]) -> Result:
    time = np.arange(0.0, 600.0, 100.0)
    made: dict[str, dict[str, Any]] = {
        "summary": {
            "metric": [
                "circuit_utilization_pct",
                "p99_all_us",
                "dropped_packets",
                "marked_packets",
                "timeouts",
                "retransmits",
            ],
            "unit": ["%", "us", "packets", "packets", "timeouts", "packets"],
            "value": [50.0 - late, 100.0, 40.0 + late, 50.0 - late, late, 8.0],
        },
        "latency": {
            "network": ["circuit", "packet", "packet"],
            "latency_us": [40.0 + late, 80.0 + late, 120.0 + late],
            "packets": [1, 2, 1],
        },
        "series": {
            "time_us": time,
            "sequence_bytes": 20 * time + 100 * late,
            "voq_packets": np.full(6, 8.0) - late,
            "day": time > 1e9,
        },
        "queue_waits": {
            "name": ["a", "a", "b"],
            "wait_us": [2.0 + late, 6.0 + late, 20.0 - late],
            "packets": [3, 1, 8],
        },
        "flows": {
            "id": [0, 1],
            "start_us": [10.0, 0.0],
            "fct_us": [100.0 + late, 300.0 + late],
            "bytes_received": [3000.0 - 100 * late, 1000.0 + 100 * late],
        },
        "jobs": {"job": [0, 1, 2], "duration_us": [60.0 + late, 40.0 - late, np.nan if late else 9.0]},
        "week": WEEK,
    }
    spec = {"measure": {"pair": [0, 1]}}
    manifest = {
        "elapsed_us": 600.0,
        "name": "x",
        "digest": "0",
        "seed": 1,
        "time_scale": 1,
        "key": f"k{late}",
        "spec": spec,
    }
    made.pop(without, None)
    return Result({**manifest, "kernel": {"version": "7.2", "hz": 250}}, made | tables)


def test_each_divergence_is_what_its_definition_says() -> None:
    found = {d.name: d.value for d in divergence.divergences(result_of(4.0), result_of())}
    assert found["utilization"] == pytest.approx(-4.0)
    assert found["latency"] == pytest.approx(100 * 4 / 80)  # all packets 4 us later, by the mean of 80
    # Later at one queue and earlier at the other, by means of 3 and 20.
    assert found["waits"] == pytest.approx(100 * 8 / 23)
    assert found["voq"] == pytest.approx(4.0)
    assert found["sequence"] == pytest.approx(
        100 * 400 / (20 * 500 / 2.5)
    )  # by the bytes of one of 2.5 weeks
    assert found["completion"] == pytest.approx(100 * 4 / 200)
    # One later, one earlier, by a mean of 50; the third did not complete in both.
    assert found["jobs"] == pytest.approx(100 * 4 / 50)
    # One flow has 400 bytes less, the other 400 more, of 2000 on Linux.
    assert found["goodput"] == pytest.approx(20.0)
    assert found["drops"] == pytest.approx(10.0)
    assert found["marks"] == pytest.approx(8.0)
    assert found["timeouts"] == pytest.approx(400.0)  # four, where Linux has none
    assert found["retransmissions"] == 0
    assert found["unfinished"] == 0


def test_the_largest_divergence_comes_first_and_the_unknown_last() -> None:
    values = [
        d.value
        for d in divergence.worst_first(
            [divergence.divergences(result_of(late, without="series"), result_of()) for late in (2.0, 6.0)]
        )
    ]
    known = [abs(v) for v in values if v is not None]
    assert values[: len(known)] == [v for v in values if v is not None]
    assert known == sorted(known, reverse=True)
    assert len(known) == len(values) - 2


def test_where_two_runs_part() -> None:
    """Flow 0 starts at 10 us and takes 104 instead of 100 us; flow 1, from 0 us on, 304 instead of 300."""
    parting = divergence.parting(result_of(4.0), result_of())
    assert parting == divergence.Parting(0, 114.0, 110.0)
    assert parting.at_us == 110.0
    assert str(parting) == "flow 0 completes at 114.0 us on simulated hosts, on Linux hosts at 110.0 us"
    assert divergence.parting(result_of(0.5), result_of()) is None
    flows = result_of().flows
    never = result_of(flows={str(column): flows[column] for column in flows} | {"fct_us": [100.0, np.nan]})
    parting = divergence.parting(never, result_of())
    assert parting is not None
    assert (parting.flow, parting.linux_us) == (1, 300.0)
    assert "never on simulated hosts" in str(parting)
    found = {d.name: d.value for d in divergence.divergences(never, result_of())}
    assert found["unfinished"] == 1


def test_equal_runs_do_not_diverge() -> None:
    assert [d.value for d in divergence.divergences(result_of(), result_of())] == [0] * 13
    assert divergence.parting(result_of(), result_of()) is None


def test_a_divergence_without_a_measurement_has_no_number() -> None:
    endless = {"id": [0, 1], "fct_us": [np.nan, np.nan]}
    bare = Result({"digest": "0"}, {"summary": {"metric": ["p99_all_us"], "value": [1.0]}, "flows": endless})
    assert [d.value for d in divergence.divergences(bare, result_of())].count(None) == 12


def test_the_distance_of_distributions_is_the_area_between_them() -> None:
    a = (np.array([0.0, 10.0]), np.array([0.5, 0.5]))
    b = (np.array([0.0, 10.0]), np.array([0.25, 0.75]))
    single = (np.array([3.0]), np.array([1.0]))
    assert divergence.wasserstein(a, b) == pytest.approx(2.5)
    assert divergence.wasserstein(b, a) == pytest.approx(2.5)
    assert divergence.wasserstein(a, single) == pytest.approx(0.5 * 3 + 0.5 * 7)


def test_a_comparison_has_a_page_and_numbers_for_programs(tmp_path: Path, command: Command) -> None:
    results = {}
    for kind, late in (("simulated", 4.0), ("linux", 0.0)):
        made = result_of(late)
        results[kind] = made.save(tmp_path / "c" / comparison.STORE / made.manifest["key"])
    done = comparison.Comparison("x", results["simulated"], results["linux"], tmp_path / "c")
    (tmp_path / "c" / comparison.INDEX).write_text(json.dumps(done.as_dict()))
    told = done.as_dict()
    assert told["metrics"][0] == {
        "metric": "circuit_utilization_pct",
        "unit": "%",
        "simulated": 46.0,
        "linux": 50.0,
        "difference": -4.0,
        "interval": None,
    }
    assert {d["name"] for d in told["divergence"]} == {
        "utilization",
        "latency",
        "waits",
        "voq",
        "sequence",
        "completion",
        "jobs",
        "goodput",
        "unfinished",
        "drops",
        "marks",
        "timeouts",
        "retransmissions",
    }
    assert told["parting"] == {"flow": 0, "simulated_us": 114.0, "linux_us": 110.0}
    assert fl.load_comparison(tmp_path / "c").frame.equals(done.frame)
    assert command("report", "c").returncode == 0
    page = tmp_path / "c" / report.COMPARISON_PAGE
    assert opens_offline(page).figures == 4
    assert "1-Wasserstein" in page.read_text()


def test_several_seeds_give_means_and_intervals(tmp_path: Path) -> None:
    """Four and eight us late are 6 on average; half of the interval of two values is 12.706 times 2."""
    pairs = [(result_of(late), result_of()) for late in (4.0, 8.0)]
    done = comparison.Comparison("x", *pairs[0], tmp_path, (pairs[1],))
    row = done.frame.set_index("metric").loc["circuit_utilization_pct"]
    assert (row["simulated"], row["linux"], row["difference"]) == (44.0, 50.0, -6.0)
    assert row["interval"] == pytest.approx(12.706 * 2)
    found = {d.name: d.value for d in done.divergence}
    assert found["voq"] == pytest.approx(6.0)


def test_an_experiment_for_one_kind_of_hosts_is_refused_before_any_run(small: Path, command: Command) -> None:
    done = command("compare", small, "--set", "tcp.cc=swift", "--out", "c")
    assert done.returncode == 2
    assert "linux hosts: " in done.stderr
    assert "swift" in done.stderr
    assert not (small.parent / "c").exists()
