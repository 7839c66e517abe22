"""The Python API as a researcher uses it."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import firstlight as fl
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from firstlight.runs.result import _array


def test_a_run_gives_frames_and_a_summary(small: Path) -> None:
    result = fl.run(small)
    assert 0 < result.summary["circuit_utilization_pct"] <= 101
    assert result.summary["p99_all_us"] > 10
    assert isinstance(result.flows, pd.DataFrame)
    assert len(result.flows) == 4
    assert {"time_us", "sequence_bytes", "voq_packets"} <= set(result.series.columns)
    assert not result.ports.empty
    assert not result.pairs.empty
    assert not result.latency.empty
    assert len(result.week) == 8
    assert result.manifest["conservation"]["ok"] is True
    assert result.name == "small"


def test_overrides_change_the_run(small: Path) -> None:
    shallow, deep = fl.run(small, {"voq.small": 4}), fl.run(small, {"voq.small": 64})
    assert deep.summary["p99_all_us"] > 2 * shallow.summary["p99_all_us"]
    assert deep.digest != shallow.digest
    assert deep.manifest["overrides"] == {"voq.small": 64}


def test_repeats_give_one_digest(small: Path) -> None:
    assert fl.run(small).digest == fl.run(small).digest
    assert fl.run(small).digest != fl.run(small, {"seed": 8}).digest


def test_measuring_more_does_not_change_the_run(small: Path, tmp_path: Path) -> None:
    plain = fl.run(small)
    assert plain.digest == fl.run(small, {"measure.series": "100us"}).digest
    assert plain.digest == fl.run(small, out=tmp_path / "r", capture=True).digest


def test_a_stored_result_is_the_result(small: Path, tmp_path: Path) -> None:
    result = fl.run(small)
    stored = result.save(tmp_path / "kept")
    again = fl.load(tmp_path / "kept")
    assert again.digest == stored.digest == result.digest
    assert again.tables == result.tables
    for name in result.tables:
        pd.testing.assert_frame_equal(again.table(name), result.table(name), check_dtype=False)
    assert json.loads((tmp_path / "kept" / "manifest.json").read_text())["seed"] == 7


def test_a_run_is_stored_without_what_takes_long_to_import(small: Path) -> None:
    words = "import sys, firstlight as fl; fl.run('small.toml', {'measure.account': True}, out='r')"
    words += "; print(sorted({'pandas', 'matplotlib', 'scipy'} & set(sys.modules)))"
    ended = subprocess.run(
        [sys.executable, "-c", words], cwd=small.parent, capture_output=True, text=True, check=True
    )
    assert ended.stdout == "[]\n"


@pytest.mark.parametrize(
    "values",
    [
        np.array([1, -(2**62), 3]),
        np.array([0.5, np.nan, -np.inf]),
        np.array([0.5, 1.5, 2.5, 3.5])[::2],
        np.array([True, False] * 5),
        np.array([3, 0], dtype=np.uint32),
        np.array(["of a", "program"], dtype=object),
        ["", "a b", "\u00e9\u6f22", ""],
        [],
    ],
    ids=repr,
)
def test_columns_are_stored_as_pyarrow_would_convert_them(values: Any) -> None:
    known = _array(values)
    known.validate(full=True)
    usual = pa.array(values, known.type)
    assert str(known.to_pylist()) == str(usual.to_pylist()) and known.null_count == 0


def test_out_stores_and_replaces(small: Path, tmp_path: Path) -> None:
    first = fl.run(small, out=tmp_path / "r", capture=True)
    assert first.capture is not None
    assert first.capture.read_bytes()[:4] == b"\x0a\x0d\x0d\x0a"
    second = fl.run(small, {"seed": 9}, out=tmp_path / "r")
    assert second.capture is None
    assert fl.load(tmp_path / "r").digest == second.digest != first.digest
    assert sorted(p.name for p in tmp_path.iterdir()) == ["r", "small.toml"]


def test_progress_is_reported_and_can_stop_the_run(small: Path, tmp_path: Path) -> None:
    seen: list[float] = []
    fl.run(small, {"duration": "200ms"}, progress=seen.append)
    assert seen == sorted(seen)
    assert all(0 <= f <= 1 for f in seen)

    def stop(fraction: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fl.run(small, {"duration": "60s"}, out=tmp_path / "r", progress=stop)
    assert [p.name for p in tmp_path.iterdir()] == ["small.toml"]


def test_inspect_shows_hosts_rates_and_week(small: Path) -> None:
    built = fl.inspect(small, {"schedule.stands_for": 5})
    assert built["name"] == "small"
    assert len(built["week"]) == 4


def test_tables_that_are_absent_are_named(small: Path) -> None:
    with pytest.raises(fl.ResultError, match=r"no table 'nonsense'; it has: .*flows"):
        fl.run(small).table("nonsense")


def test_errors_are_one_tree() -> None:
    for kind in (fl.SpecError, fl.ResultError, fl.PlanError, fl.RunError):
        assert issubclass(kind, fl.FirstlightError)
