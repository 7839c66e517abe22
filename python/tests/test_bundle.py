"""``firstlight bundle`` and ``firstlight rerun``: packed results run again, and differences are reported."""

import json
import shutil
import zipfile
from pathlib import Path

import firstlight as fl
import pytest
from conftest import SMALL, Command
from firstlight.claims import read, reproduce
from firstlight.cli.bundle import results_in
from firstlight.runs import bundle
from firstlight.runs.pool import run_all

SIZES = "1000 0.5\n4000 1\n"
TREE = """\
duration = "5ms"

[fabric]
kind = "star"
hosts = 4

[hosts]
rate = "10Gbps"
delay = "1us"

[tcp]
cc = "newreno"

[[workload]]
kind = "poisson"
load = 0.2
sizes = "../../../sizes.txt"
flows = 30
"""


@pytest.fixture
def short(small: Path) -> Path:
    small.write_text(SMALL.replace('"24ms"', '"12ms"'))
    return small


@pytest.fixture
def with_input(tmp_path: Path) -> Path:
    """An experiment that names a file above its folder."""
    (tmp_path / "sizes.txt").write_text(SIZES)
    file = tmp_path / "some" / "folder" / "within" / "star.toml"
    file.parent.mkdir(parents=True)
    file.write_text(TREE)
    return file


def edited(file: Path, name: str, old: str, new: str) -> None:
    """Replace a text in one file of a bundle."""
    with zipfile.ZipFile(file) as archive:
        content = {entry: archive.read(entry) for entry in archive.namelist()}
    assert old.encode() in content[name]
    content[name] = content[name].replace(old.encode(), new.encode())
    with zipfile.ZipFile(file, "w") as archive:
        for entry, data in content.items():
            archive.writestr(entry, data)


def test_a_result_runs_again_where_its_experiment_is_not(
    with_input: Path, tmp_path: Path, command: Command
) -> None:
    done = fl.run(with_input, {"seed": 5}, out=tmp_path / "done")
    made = command("bundle", "done")
    assert made.returncode == 0, made.stderr
    shutil.rmtree(tmp_path / "some")
    (tmp_path / "sizes.txt").unlink()
    again = command("rerun", "done.bundle.zip")
    assert again.returncode == 0, again.stderr
    assert again.stdout == "1 of 1 digests agree\n"
    (point,) = (tmp_path / "results/rerun/done/points").iterdir()
    assert (fl.load(point).digest, point.name) == (done.digest, done.manifest["key"])


def test_equal_results_give_equal_bytes(short: Path, tmp_path: Path) -> None:
    fl.sweep(short, axes={"seed": [1, 2]}, out=tmp_path / "a")
    file = tmp_path / "a.zip"
    bundle.pack(tmp_path / "a", results_in(tmp_path / "a"), file)
    first = file.read_bytes()
    bundle.pack(tmp_path / "a", results_in(tmp_path / "a"), file)
    assert file.read_bytes() == first


def test_a_sweep_is_packed_with_the_points_of_its_index_alone(
    short: Path, tmp_path: Path, command: Command
) -> None:
    fl.sweep(short, axes={"seed": [1, 2, 3]}, out=tmp_path / "a")
    fl.sweep(short, axes={"seed": [1, 2]}, out=tmp_path / "a")
    assert command("bundle", "a", "--out", "it.zip").returncode == 0
    with zipfile.ZipFile(tmp_path / "it.zip") as archive:
        names = archive.namelist()
        index = json.loads(archive.read(bundle.INDEX))
    assert len([name for name in names if name.endswith("manifest.json")]) == 2
    assert {"results/sweep.csv", "experiments/0/small.toml", "README.txt"} <= set(names)
    assert [p["label"] for p in index["points"]] == ["seed=1", "seed=2"]
    assert index["version"] == fl.version() and "numpy" in index["packages"]
    assert command("rerun", "it.zip").stdout == "2 of 2 digests agree\n"


def test_a_reproduction_is_packed(tmp_path: Path, command: Command) -> None:
    claims = read.select(read.find(), ["cee/timers"])
    reproduce.run(claims, "quick", reproduce.plan(claims, "quick"), tmp_path / "all")
    count = len(results_in(tmp_path / "all"))
    assert count == len(reproduce.plan(claims, "quick"))
    assert command("bundle", "all").returncode == 0
    known = bundle.unpack(tmp_path / "all.bundle.zip", tmp_path / "unpacked")
    assert known.different(run_all(known.points, tmp_path / "all" / "points")) == []


def test_a_digest_that_differs_is_told(short: Path, tmp_path: Path, command: Command) -> None:
    fl.run(short, out=tmp_path / "a")
    assert command("bundle", "a").returncode == 0
    edited(tmp_path / "a.bundle.zip", "experiments/0/small.toml", "seed = 7", "seed = 8")
    again = command("rerun", "a.bundle.zip", "--out", "again")
    assert again.returncode == 1
    assert "as in the file: digest" in again.stdout and "0 of 1 digests agree" in again.stdout
    assert f"the bundle is of version {fl.version()}" in again.stderr


def test_an_input_that_has_changed_or_is_missing_is_refused(
    with_input: Path, tmp_path: Path, command: Command
) -> None:
    fl.run(with_input, out=tmp_path / "done")
    (tmp_path / "sizes.txt").write_text("1000 1\n")
    assert "sizes.txt: has changed since" in command("bundle", "done").stderr
    (tmp_path / "sizes.txt").unlink()
    assert "bundle from the folder where" in command("bundle", "done").stderr
    assert not (tmp_path / "done.bundle.zip").exists()


def test_absolute_inputs_are_refused(with_input: Path, tmp_path: Path, command: Command) -> None:
    with_input.write_text(TREE.replace("../../../sizes.txt", str(tmp_path / "sizes.txt")))
    fl.run(with_input, out=tmp_path / "done")
    assert "write its path relative to" in command("bundle", "done").stderr


def test_other_files_are_not_replaced_and_not_taken_for_bundles(
    short: Path, tmp_path: Path, command: Command
) -> None:
    fl.run(short, out=tmp_path / "a")
    (tmp_path / "mine.zip").write_text("mine")
    assert "is not a bundle" in command("bundle", "a", "--out", "mine.zip").stderr
    assert (tmp_path / "mine.zip").read_text() == "mine"
    assert "not a bundle" in command("rerun", "mine.zip").stderr
    assert "no such file" in command("rerun", "none.zip").stderr
    assert "no such directory" in command("bundle", "none").stderr
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("x", "y")
    assert "not a bundle" in command("rerun", "other.zip").stderr


def test_damaged_bundles_are_refused(short: Path, tmp_path: Path, command: Command) -> None:
    fl.run(short, out=tmp_path / "a")
    assert command("bundle", "a").returncode == 0
    file = tmp_path / "a.bundle.zip"
    content = file.read_bytes()
    at = content.index(b"results/flows.parquet") + 60
    file.write_bytes(content[:at] + bytes(byte ^ 255 for byte in content[at : at + 20]) + content[at + 20 :])
    answer = command("rerun", file.name)
    assert answer.returncode == 2 and "damaged" in answer.stderr and "Traceback" not in answer.stderr
    file.write_bytes(content)
    edited(file, "results/manifest.json", '"seed": 7', '"seed": 8')
    assert "edited or damaged" in command("rerun", file.name).stderr
    edited(file, "bundle.json", '"results"', '"../../elsewhere"')
    assert "is not in the bundle" in command("rerun", file.name).stderr


def test_results_without_their_experiment_are_refused(short: Path, tmp_path: Path, command: Command) -> None:
    done = fl.run(short, out=tmp_path / "a")
    del done.manifest["experiment"]
    done.save(tmp_path / "old")
    assert "does not hold its experiment" in command("bundle", "old").stderr
