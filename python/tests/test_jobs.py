"""Workloads of messages as a researcher uses them."""

import json
from pathlib import Path

import firstlight as fl
import pytest
from conftest import Command
from firstlight.claims.measures import value
from firstlight.numbers import quantiles
from firstlight.pages import report

HDFS = """\
name = "hdfs"
duration = "1s"

[fabric]
kind = "leaf_spine"
racks = 4
hosts_per_rack = 2
spines = 1

[hosts]
rate = "10Gbps"

[links]
rate = "10Gbps"

[[workload]]
name = "write"
kind = "hdfs"
files = 8
file_size = "2MB"
"""


@pytest.fixture
def hdfs(tmp_path: Path) -> Path:
    file = tmp_path / "hdfs.toml"
    file.write_text(HDFS)
    return file


def test_each_file_is_a_job_with_its_time(hdfs: Path) -> None:
    result = fl.run(hdfs)
    jobs = result.jobs
    assert list(jobs.job) == list(range(8))
    assert set(jobs.workload) == {"write"}
    assert (jobs.size_bytes == 2_000_000).all()
    assert (jobs.throughput_gbps - jobs.size_bytes * 8e-3 / jobs.duration_us).abs().max() < 1e-9
    assert result.summary["job_max_us"] == pytest.approx(jobs.duration_us.max())
    assert result.summary["jobs_complete"] == 8


def test_percentiles_of_block_writes_are_measured(hdfs: Path) -> None:
    result = fl.run(hdfs, {"workload.0.job": "block", "workload.0.block": "500kB"})
    times = sorted(result.jobs.duration_us)
    assert len(times) == 32
    found = {p: value(result, f"job_p{p}_us") or 0.0 for p in (10, 25, 50, 75, 90, 95, 99)}
    for p, measured in found.items():
        assert measured == pytest.approx(quantiles(result.jobs.duration_us, [p / 100])[0])
    assert list(found.values()) == sorted(found.values())
    assert times[0] < found[10] < found[90] <= times[-1] == value(result, "job_max_us")


def test_placement_decides_the_pairs_of_racks(hdfs: Path) -> None:
    def partners(placement: str) -> set[tuple[int, int]]:
        flows = fl.run(hdfs, {"workload.0.placement": placement}).flows
        data = flows[(flows.size_bytes > 10_000) & (flows.src // 2 != flows.dst // 2)]
        return set(zip(data.src // 2, data.dst // 2, strict=True))

    assert partners("rehdfs") == {(0, 1), (1, 2), (2, 3), (3, 0)}
    assert len(partners("random")) > 4


def test_a_report_shows_the_jobs(hdfs: Path, tmp_path: Path) -> None:
    fl.run(hdfs).save(tmp_path / "out")
    page = report.write(tmp_path / "out").read_text()
    assert "Cumulative distribution of the times of complete jobs" in page
    assert "throughput_gbps" in page
    again = fl.load(tmp_path / "out")
    assert len(again.jobs) == 8
    fl.run(hdfs, {"duration": "10us"}).save(tmp_path / "early")
    assert "Cumulative distribution" not in report.write(tmp_path / "early").read_text()


def test_inspect_counts_jobs_and_messages(command: Command, hdfs: Path) -> None:
    shown = command("inspect", str(hdfs))
    assert shown.returncode == 0, shown.stderr
    assert "messages 510  jobs 8" in shown.stdout
    told = json.loads(command("inspect", str(hdfs), "--json").stdout)
    assert told["workloads"][0]["jobs"] == 8
