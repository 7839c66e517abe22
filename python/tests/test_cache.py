"""``firstlight cache``: what is there is listed, and only what is asked for is removed."""

import fcntl
from pathlib import Path

import pytest
from conftest import Command
from firstlight.errors import PlanError
from firstlight.linux import cached, directory


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("FIRSTLIGHT_CACHE", str(folder))
    monkeypatch.setattr(cached, "run_places", lambda: [tmp_path])
    for name in ("kernels/one/linux", "sources/linux-source-6.12_1.tar", "kernels/.building-x/file"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"x" * 100_000)
    for name in ("dead", "alive"):
        (tmp_path / f"{directory.PREFIX}{name}").mkdir()
        (tmp_path / f"{directory.PREFIX}{name}" / "lock").touch()
    return folder


def test_all_that_is_there_is_listed(cache: Path, command: Command) -> None:
    found = [(entry.group, entry.path.name) for entry in cached.contents()]
    assert found[:2] == [("kernels", "one"), ("sources", "linux-source-6.12_1.tar")]
    assert len([group for group, _ in found if group == "leftovers"]) == 3
    assert all(entry.size >= 100_000 for entry in cached.contents()[:2])
    assert "linux-source-6.12_1.tar" in command("cache").stdout


def test_only_what_is_asked_for_is_cleared(cache: Path, command: Command) -> None:
    assert cached.clear("sources") >= 100_000
    assert not list((cache / "sources").iterdir())
    assert (cache / "kernels" / "one" / "linux").is_file()
    assert command("cache", "--clear", "kernels").returncode == 0
    assert not (cache / "kernels" / "one").exists()
    with pytest.raises(PlanError, match="holds no 'everything': write one of "):
        cached.clear("everything")


def test_leftovers_of_live_runs_stay(cache: Path, tmp_path: Path) -> None:
    alive = tmp_path / f"{directory.PREFIX}alive"
    with (alive / "lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        cached.clear("leftovers")
    assert alive.is_dir()
    assert not (tmp_path / f"{directory.PREFIX}dead").exists()
    assert not (cache / "kernels" / ".building-x").exists()
    assert (cache / "kernels" / "one").is_dir()
