"""Wrong input of each kind: exit code 2, one message that names the place, never a traceback, nothing left
behind."""

from pathlib import Path

import firstlight as fl
import pytest
from conftest import SMALL, Command


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("rate = ", "rat = ", "hosts.rat"),
        ("[voq]", "[voq", "small.toml"),
        ("[measure]", '[sweep]\n"voq.small" = [4, 8]\n\n[measure]', "sweep"),
    ],
)
def test_a_wrong_file_stops_before_the_run(
    small: Path, command: Command, old: str, new: str, named: str
) -> None:
    assert old in SMALL
    small.write_text(SMALL.replace(old, new, 1))
    done = command("run", small, "--out", "r")
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("error: ")
    assert named in done.stderr
    assert "Traceback" not in done.stderr
    assert [p.name for p in small.parent.iterdir()] == ["small.toml"]


WRONG_WORDS = [
    (["run", "missing.toml"], "no such file"),
    (["run", "."], "is a directory"),
    (["run"], "Missing argument"),
    (["rum", "small.toml"], "No such command 'rum': did you mean 'run'?"),
    (["small.toml"], "No such command 'small.toml': write 'firstlight run small.toml'"),
    (["run", "small.toml", "--set", "voq.small"], "KEY=VALUE"),
    (["run", "small.toml", "--set", "voq.smal=4"], "voq.small"),
    (["run", "small.toml", "--set", "voq.small=many"], "voq.small"),
    (["run", "small.toml", "--set", "seed=1", "--set", "seed=2"], "given twice"),
    (["run", "small.toml", "--out", "small.toml"], "not a result"),
    (["sweep", "small.toml"], "[sweep]"),
    (["sweep", "missing.toml"], "no such file"),
    (["sweep", "small.toml", "--jobs", "0"], "--jobs"),
    (["run", "small.toml", "--hosts", "windows"], "--hosts"),
    (["run", "small.toml", "--patience", "0"], "--patience"),
    (["run", "small.toml", "--hosts", "linux", "--set", "hosts.kind=linux"], "given twice"),
    (["compare", "missing.toml"], "no such file"),
    (["reproduce", "fig99"], "did you mean fig09-timeouts"),
    (["report", "missing"], "no such directory"),
    (["report", "."], "holds no result"),
    (["inspect", "missing.toml"], "no such file"),
]


@pytest.mark.parametrize(("words", "named"), WRONG_WORDS, ids=[" ".join(w[0]) for w in WRONG_WORDS])
def test_wrong_arguments_are_named(small: Path, command: Command, words: list[str], named: str) -> None:
    done = command(*words)
    assert done.returncode == 2
    assert named in done.stderr
    assert "Traceback" not in done.stderr
    assert [p.name for p in small.parent.iterdir()] == ["small.toml"]


@pytest.mark.parametrize(
    ("table", "named"),
    [
        ('"voq.small" = 8', "a list of values"),
        ('"voq.small" = []', "a list of values"),
        ('"voq.small" = [8, 8]', "named twice"),
        ('"voq.small" = [[8]]', "not a number"),
        ('"voq.smal" = [8]', "voq.small"),
        ('"voq.small" = [8, 0]', "sweep.voq.small: 0 packets"),
    ],
)
def test_wrong_sweeps(small: Path, command: Command, table: str, named: str) -> None:
    small.write_text(f"{SMALL}\n[sweep]\n{table}\n")
    done = command("sweep", small, "--out", "s")
    assert done.returncode == 2
    assert named in done.stderr
    assert not (small.parent / "s").exists()


def test_wrong_results_are_refused(tmp_path: Path, small: Path) -> None:
    with pytest.raises(fl.ResultError, match="not a result"):
        fl.load(tmp_path)
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(fl.ResultError, match="cannot be read"):
        fl.load(tmp_path)
    (tmp_path / "manifest.json").write_text("{}")
    with pytest.raises(fl.ResultError, match="no digest"):
        fl.load(tmp_path)


def test_a_capture_needs_a_place(small: Path) -> None:
    with pytest.raises(fl.ResultError, match="needs a place"):
        fl.run(small, capture=True)


def test_the_api_raises_what_the_command_prints(small: Path) -> None:
    with pytest.raises(fl.SpecError, match=r"voq\.small"):
        fl.run(small, {"voq.smal": 4})
    with pytest.raises(fl.SpecError, match="no such file"):
        fl.run(small.with_name("missing.toml"))
