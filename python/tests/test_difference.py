"""``firstlight diff``: settings, digests and metrics of two results or sweeps."""

import json
from pathlib import Path

import firstlight as fl
import numpy as np
import pytest
from conftest import SMALL, Command
from firstlight.numbers import half_interval
from firstlight.runs.difference import difference


@pytest.fixture
def short(small: Path) -> Path:
    small.write_text(SMALL.replace('"24ms"', '"12ms"'))
    return small


def test_a_result_does_not_differ_from_itself(short: Path, tmp_path: Path) -> None:
    fl.run(short, out=tmp_path / "a")
    found = difference(tmp_path / "a", tmp_path / "a")
    assert (found.same_digests, found.settings, len(found.frame)) == (1, [], 0)


def test_keys_and_metrics_that_differ_are_told(short: Path, tmp_path: Path, command: Command) -> None:
    a = fl.run(short, out=tmp_path / "a")
    b = fl.run(short, {"voq.small": 4, "tcp.cc": "dctcp"}, out=tmp_path / "b")
    found = difference(tmp_path / "a", tmp_path / "b")
    settings = {key: values for key, *values in found.settings}
    assert settings["voq.small"] == ["16", "4"]
    assert settings["digest"] == [a.digest, b.digest]
    row = found.frame.set_index("metric").loc["circuit_utilization_pct"]
    assert row["B - A"] == pytest.approx(
        b.summary["circuit_utilization_pct"] - a.summary["circuit_utilization_pct"]
    )
    assert np.isnan(row["interval"])
    printed = command("diff", "a", "b").stdout
    assert "voq.small: 16 -> 4" in printed and "circuit_utilization_pct" in printed
    assert json.loads(command("diff", "a", "b", "--json").stdout)["pairs"] == 1


def test_sweeps_are_compared_point_by_point_with_intervals(short: Path, tmp_path: Path) -> None:
    fl.sweep(short, axes={"seed": [1, 2, 3]}, out=tmp_path / "a")
    fl.sweep(short, {"voq.small": 8}, {"seed": [3, 1, 2, 4]}, out=tmp_path / "b")
    found = difference(tmp_path / "a", tmp_path / "b")
    assert len(found.pairs) == 3 and found.alone == ["seed=4"]
    assert [a.manifest["seed"] for a, _ in found.pairs] == [b.manifest["seed"] for _, b in found.pairs]
    assert (found.frame["interval"] >= 0).all()


def test_intervals_are_student_s() -> None:
    assert half_interval(np.array([1.0, 3.0])) == pytest.approx(12.706)
    assert half_interval(np.array([2.0, 2.0, 2.0])) == 0
    assert np.isnan(half_interval(np.array([1.0])))


def test_what_cannot_be_compared_is_said(short: Path, tmp_path: Path) -> None:
    fl.sweep(short, axes={"seed": [1, 2]}, out=tmp_path / "a")
    fl.sweep(short, axes={"seed": [3, 4]}, out=tmp_path / "b")
    with pytest.raises(fl.ResultError, match="no point in common"):
        difference(tmp_path / "a", tmp_path / "b")
    with pytest.raises(fl.ResultError, match="holds no result"):
        difference(tmp_path, tmp_path / "a")
