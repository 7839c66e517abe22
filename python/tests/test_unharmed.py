"""Nothing harms what is there: foreign directories, links, signals, damage, several sweeps at once."""

import errno
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import firstlight as fl
import numpy as np
import pytest
from conftest import SMALL, Command, argv, environment
from firstlight.linux import directory, doctor, guest, kernels
from firstlight.runs import bundle, leftovers, staging
from firstlight.runs.result import is_sound

SHORT = SMALL.replace('"24ms"', '"12ms"')


@pytest.fixture
def short(small: Path) -> Path:
    small.write_text(SHORT)
    return small


def tree(folder: Path) -> dict[str, bytes]:
    return {str(f.relative_to(folder)): f.read_bytes() for f in sorted(folder.rglob("*")) if f.is_file()}


# Directories


@pytest.mark.parametrize("name", ["../../x", "/tmp/x", "a/b", "a\\u0000b", "n" * 5000])
def test_a_name_never_leaves_the_directory_of_results(small: Path, command: Command, name: str) -> None:
    small.write_text(SHORT.replace('"small"', f'"{name}"'))
    done = command("run", small)
    assert done.returncode == 2
    assert "name" in done.stderr and len(done.stderr) < 1500
    assert [p.name for p in small.parent.iterdir()] == ["small.toml"]


FOREIGN: dict[str, dict[str, str]] = {
    "names that a sweep or a reproduction writes": dict.fromkeys(
        ("sweep.csv", "report.html", "verdict.json"), "precious"
    ),
    "a browser's extension": {"manifest.json": '{"manifest_version": 3}', "src/app.js": "precious"},
    "a manifest alone": {"manifest.json": '{"manifest_version": 3}'},
    "a manifest that is none": {"manifest.json": "precious", "flows.parquet": "precious"},
    "another tool's sweep": {"sweep.json": '{"axes": {}, "points": []}', "sweep.csv": "precious"},
    "another tool's index": {"reproduction.json": "{}", "report.html": "precious"},
    "another schedule": {"schedule.json": '{"schedules": "precious"}', "notes.txt": "precious"},
    "a bundle of leaves": {"bundle.json": "{}", "points/leaf": "precious", "compare.json": "{}"},
}


@pytest.mark.parametrize("files", FOREIGN.values(), ids=FOREIGN)
@pytest.mark.parametrize(
    "words",
    [
        ["run", "small.toml"],
        ["sweep", "small.toml"],
        ["reproduce", "timers"],
        ["schedule", "demand.csv", "--week", "6ms"],
    ],
    ids=lambda words: words[0],
)
def test_a_foreign_directory_is_left_as_it_is(
    short: Path, command: Command, words: list[str], files: dict[str, str]
) -> None:
    (short.parent / "demand.csv").write_text("0,1\n1,0\n")
    short.write_text(f"{SHORT}\n[sweep]\nseed = [1]\n" if words[0] == "sweep" else SHORT)
    foreign = short.parent / "mine"
    for name, content in files.items():
        (foreign / name).parent.mkdir(parents=True, exist_ok=True)
        (foreign / name).write_text(content)
    before = tree(foreign)
    done = command(*words, "--out", "mine")
    assert done.returncode == 2
    assert "which Firstlight did not write" in done.stderr
    assert tree(foreign) == before


def test_notes_in_a_result_are_not_removed(short: Path) -> None:
    result = fl.run(short, out=short.parent / "r")
    assert fl.run(short, out=short.parent / "r").digest == result.digest, "a result is replaced"
    notes = short.parent / "r" / "notes.md"
    notes.write_text("precious")
    with pytest.raises(fl.ResultError, match=r"holds notes.md, which Firstlight did not write"):
        fl.run(short, {"seed": 2}, out=short.parent / "r")
    assert notes.read_text() == "precious" and fl.load(short.parent / "r").digest == result.digest


@pytest.mark.parametrize("words", [["sweep", "small.toml"], ["reproduce", "timers"]])
def test_the_root_and_directories_of_other_things_are_refused(
    short: Path, command: Command, words: list[str]
) -> None:
    short.write_text(f"{SHORT}\n[sweep]\nseed = [1]\n")
    root = set(Path("/").iterdir())
    done = command(*words, "--out", "/")
    assert done.returncode == 2 and "/: something is mounted there" in done.stderr
    assert set(Path("/").iterdir()) == root
    done = command(*words, "--out", ".")
    assert done.returncode == 2 and "which Firstlight did not write" in done.stderr
    assert [path.name for path in short.parent.iterdir()] == ["small.toml"]


def test_a_link_stays_and_what_it_means_is_written(short: Path, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    for name, target in (("link", "there"), ("dangling", "new")):
        (tmp_path / name).symlink_to(target)
        fl.run(short, out=tmp_path / name)
        assert (tmp_path / name).is_symlink()
        assert fl.load(tmp_path / target).name == "small"
    for name in ("trace", "bundle"):
        (tmp_path / name).symlink_to(f"{name}.target")
    fl.run(short, out=tmp_path / "kept", trace=tmp_path / "trace")
    bundle.pack(tmp_path / "kept", {"kept": fl.load(tmp_path / "kept")}, tmp_path / "bundle")
    for name in ("trace", "bundle"):
        assert (tmp_path / name).is_symlink() and (tmp_path / f"{name}.target").stat().st_size > 100
    (tmp_path / "lost").symlink_to("no/such")
    fl.sweep(short, axes={"seed": [1]}, out=tmp_path / "lost")
    assert (tmp_path / "no" / "such" / "sweep.csv").is_file()
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(fl.ResultError, match="pipe: is a file; name a directory"):
        fl.sweep(short, axes={"seed": [1]}, out=tmp_path / "pipe")
    (tmp_path / "round").symlink_to("round")
    with pytest.raises(fl.ResultError, match="round"):
        fl.run(short, out=tmp_path / "round")


@pytest.mark.parametrize("out", ["x" * 300, "a\0b", "d/" * 3000])
def test_impossible_places_are_refused_before_the_run(short: Path, out: str) -> None:
    with pytest.raises(fl.ResultError) as error:
        fl.run(short, {"duration": "2000s"}, out=out)
    assert len(str(error.value)) < 700


def test_a_result_s_place_is_no_mount_point(short: Path) -> None:
    with pytest.raises(fl.ResultError, match="/dev/shm: something is mounted there; name a directory in it"):
        fl.run(short, {"duration": "2000s"}, out="/dev/shm")


@pytest.mark.parametrize("trace", ["r", "r/t", "./r/../r/t"])
def test_a_timeline_has_a_place_of_its_own(short: Path, trace: str) -> None:
    (short.parent / "r").mkdir()
    with pytest.raises(fl.PlanError, match="the result gets this place; name another file"):
        fl.run(short, {"duration": "2000s"}, out=short.parent / "r", trace=short.parent / trace)


# Signals


@pytest.mark.parametrize("which", [signal.SIGTERM, signal.SIGHUP])
def test_a_run_that_is_ended_leaves_nothing(short: Path, which: signal.Signals) -> None:
    run = start(short, "run", "small.toml", "--set", "duration=2000s", "--out", "r", "--capture")
    wait_for(lambda: len(list(short.parent.iterdir())) == 2)
    run.send_signal(which)
    _, errors = run.communicate(timeout=60)
    assert run.returncode == 128 + which
    assert errors.splitlines()[-1].startswith(f"ended by {which.name}")
    assert [p.name for p in short.parent.iterdir()] == ["small.toml"]


def test_being_asked_to_end_again_and_again_changes_nothing(short: Path) -> None:
    for _ in range(3):
        run = start(short, "run", "small.toml", "--set", "duration=2000s", "--out", "r", "--capture")
        wait_for(lambda: len(list(short.parent.iterdir())) == 2)
        for which in (signal.SIGTERM, signal.SIGTERM, signal.SIGHUP, signal.SIGTERM):
            run.send_signal(which)
        _, errors = run.communicate(timeout=60)
        assert "Traceback" not in errors and run.returncode in (143, 129)
        assert [p.name for p in short.parent.iterdir()] == ["small.toml"]


def test_a_sweep_that_is_ended_leaves_its_finished_points(short: Path) -> None:
    short.write_text(f'{SHORT}\n[sweep]\nduration = ["12ms", "2000s"]\n')
    sweep = start(short, "sweep", "small.toml", "--out", "s", "--jobs", "2")
    points = short.parent / "s" / "points"
    wait_for(lambda: points.is_dir() and len(list(points.glob("[!.]*/manifest.json"))) >= 1)
    sweep.send_signal(signal.SIGTERM)
    sweep.communicate(timeout=60)
    assert sweep.returncode == 143
    assert [is_sound(p) for p in points.iterdir()] == [True]


def test_the_next_run_clears_what_a_killed_one_left(short: Path) -> None:
    run = start(short, "run", "small.toml", "--set", "duration=2000s", "--out", "r", "--capture")
    wait_for(lambda: len(list(short.parent.iterdir())) == 2)
    run.kill()
    run.communicate()
    assert len(list(leftovers.left_in(short.parent))) == 1
    other = short.parent / f"{leftovers.PREFIX}{'0' * 8}-{'0' * 8}-1-{'0' * 8}"  # of another machine
    other.mkdir()
    fl.run(short, out=short.parent / "r")
    assert sorted(p.name for p in short.parent.iterdir()) == sorted([other.name, "r", "small.toml"])


def test_ctrl_c_at_any_moment_of_the_start_shows_no_traceback(short: Path) -> None:
    for delay in (0.03, 0.06, 0.1, 0.2, 0.4):
        run = start(short, "run", "small.toml", "--set", "duration=2000s", "--out", "r")
        time.sleep(delay)
        run.send_signal(signal.SIGINT)
        _, errors = run.communicate(timeout=60)
        assert not re.search('File ".*/firstlight/', errors), (delay, errors)
        assert not (short.parent / "r").exists()


# Damage

DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda content: b"",
    "truncated": lambda content: content[: len(content) // 2],
    "flipped": lambda content: content[:40] + bytes([content[40] ^ 1]) + content[41:],
}


@pytest.mark.parametrize("how", DAMAGES)
@pytest.mark.parametrize("name", ["summary.parquet", "flows.parquet", "manifest.json"])
def test_damage_is_named_and_a_damaged_point_is_run_again(
    short: Path, tmp_path: Path, name: str, how: str
) -> None:
    done = fl.sweep(short, axes={"seed": [1]}, out=tmp_path / "s", jobs=1)
    point = done.results[0].path
    assert point is not None
    file = point / name
    file.write_bytes(DAMAGES[how](file.read_bytes()))
    with pytest.raises(fl.ResultError, match=name):
        fl.load(point).table(name.removesuffix(".parquet"))
    again = fl.sweep(short, axes={"seed": [1]}, out=tmp_path / "s", jobs=1)
    assert is_sound(point) and list(again.frame["digest"]) == list(done.frame["digest"])


def test_a_pipe_where_a_manifest_belongs_is_not_waited_for(short: Path, tmp_path: Path) -> None:
    done = fl.sweep(short, axes={"seed": [1]}, out=tmp_path / "s", jobs=1)
    point = done.results[0].path
    assert point is not None
    (point / "manifest.json").unlink()
    os.mkfifo(point / "manifest.json")
    with pytest.raises(fl.ResultError, match=r"manifest\.json: cannot be read: it is no file; run the"):
        fl.load(point)
    again = fl.sweep(short, axes={"seed": [1]}, out=tmp_path / "s", jobs=1)
    assert is_sound(point) and list(again.frame["digest"]) == list(done.frame["digest"])


@pytest.mark.parametrize("content", ['{"digest": NaN}', '{"digest": "0", "files": []}'])
def test_a_manifest_that_was_not_sealed_is_none(short: Path, tmp_path: Path, content: str) -> None:
    fl.run(short, out=tmp_path / "r")
    (tmp_path / "r" / "manifest.json").write_text(content)
    with pytest.raises(fl.ResultError, match="edited or damaged after the run"):
        fl.load(tmp_path / "r")


def test_a_table_that_the_run_did_not_write_is_no_part_of_the_result(short: Path, tmp_path: Path) -> None:
    done = fl.run(short, out=tmp_path / "r")
    (tmp_path / "r" / "extra.parquet").write_text("no table")
    assert fl.load(tmp_path / "r").tables == done.tables
    with pytest.raises(fl.ResultError, match="no table 'extra'"):
        fl.load(tmp_path / "r").table("extra")


def test_an_edited_digest_is_noticed(short: Path, tmp_path: Path) -> None:
    digest = fl.run(short, out=tmp_path / "r").digest
    manifest = tmp_path / "r" / "manifest.json"
    manifest.write_text(manifest.read_text().replace(digest, "0" * len(digest)))
    with pytest.raises(fl.ResultError, match="edited or damaged"):
        fl.load(tmp_path / "r")


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '"x"', "null", "{}", '{"points": 3}', '{"claims": [1]}', "[" * 100_000]
)
@pytest.mark.parametrize("name", ["sweep.json", "compare.json", "reproduction.json", "manifest.json"])
def test_json_of_another_shape_is_one_error(tmp_path: Path, name: str, content: str) -> None:
    from firstlight.pages import report

    (tmp_path / name).write_text(content)
    with pytest.raises(fl.ResultError, match=name):
        report.write(tmp_path)


@pytest.mark.parametrize(
    "write",
    [
        lambda folder: staging.replace_text(folder / "f", "new"),
        lambda folder: staging.replace_texts(folder, {"g": "new", "f": "new"}),
    ],
)
def test_a_write_that_fails_leaves_no_partial_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Callable[[Path], None]
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    (tmp_path / "f").write_text("old")
    with monkeypatch.context() as context, pytest.raises(fl.ResultError, match="No space left"):
        context.setattr(os, "fsync", full)
        write(tmp_path)
    assert tree(tmp_path) == {"f": b"old"}
    write(tmp_path)
    assert (tmp_path / "f").read_text() == "new"


def test_results_reach_the_disk_before_they_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[tuple[str, Path]] = []
    monkeypatch.setattr(
        staging, "sync", lambda *paths, each=map: events.extend(("sync", path) for path in paths)
    )
    monkeypatch.setattr(staging.Staging, "replace", lambda self: events.append(("rename", self.path)))

    class Files:
        def write(self, directory: Path) -> None:
            (directory / "programs").mkdir()
            (directory / "programs" / "a.out").touch()
            (directory / "manifest.json").touch()

    results = [staging.Staging(tmp_path / name) for name in ("a", "b")]
    for result in results:
        result.__enter__().write(Files())
    staging.commit_all(results)
    renamed = events.index(("rename", results[0].path))
    files = ("", "programs", "programs/a.out", "manifest.json")
    assert sorted(events[:renamed]) == sorted(("sync", r.path / file) for r in results for file in files)
    assert events[renamed:] == [*(("rename", r.path) for r in results), ("sync", tmp_path)]


@pytest.mark.parametrize("threads", [0, 4])
def test_syncing_many_files_keeps_few_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    files = [tmp_path / str(number) for number in range(200)]
    for file in files:
        file.touch()
    synced, most = [], 0
    one_at_a_time = threading.Lock()

    def fsync(handle: int) -> None:
        nonlocal most
        with one_at_a_time:  # a listing is an open directory itself
            synced.append(os.readlink(f"/proc/self/fd/{handle}"))
            most = max(most, len(os.listdir("/proc/self/fd")))

    before = len(os.listdir("/proc/self/fd"))
    monkeypatch.setattr(os, "fsync", fsync)
    with ThreadPoolExecutor(threads or 1) as pool:
        staging.sync(*files, each=pool.map if threads else map)
    assert sorted(synced) == sorted(map(str, files))
    assert most <= before + staging.AT_ONCE and len(os.listdir("/proc/self/fd")) == before


def test_goal_and_report_say_in_one_line_where_they_cannot_write(
    short: Path, command: Command, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    done = command("goal", "generate", "halo", "--ranks", "4", "--out", "file/x.goal")
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1
    done = command("goal", "generate", "halo", "--ranks", "4", "--out", "/proc/x.goal")
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    "words",
    [
        ["run", "small.toml", "--out", "full/r", "--capture"],
        ["run", "small.toml", "--out", "elsewhere", "--trace", "full/x.pftrace"],
        ["goal", "generate", "halo", "--ranks", "512", "--out", "full/x.goal"],
        ["report", "full/done"],
        ["bundle", "done", "--out", "full/x.zip"],
    ],
    ids=lambda words: f"{words[0]}{len(words)}",
)
def test_a_full_disk_is_one_line_and_leaves_no_partial_file(short: Path, words: list[str]) -> None:
    """A file system of 1 MB, 4 kB of which are free beside a result."""
    done = fl.run(short, out=short.parent / "done").path
    assert done is not None
    (short.parent / "full").mkdir()
    script = """mount -t tmpfs -o size=1m none full && cp -r done full/ || exit 9
    head -c 1m /dev/zero > full/filler 2>/dev/null
    truncate -s -4k full/filler; ls -AR full > before; "$@"; code=$?; ls -AR full > after; exit $code"""
    ended = subprocess.run(
        ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh", *argv(words)],
        cwd=short.parent,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode in (1, 2), ended.stderr
    assert "No space left" in ended.stderr and len(ended.stderr.splitlines()) == 1, ended.stderr
    assert not re.search(r"/\.[a-z]+-", ended.stderr), "an unfinished file's name is none of the user's"
    before, after = ((short.parent / name).read_text() for name in ("before", "after"))
    assert after == before


# Several at once


def test_a_directory_that_another_process_marks_at_the_moment_can_be_claimed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / leftovers.new_name()).touch()
    staging.claim(tmp_path)

    other = tmp_path / "other"
    seen = iter([False, True])  # by the other process: marked and filled after we looked
    monkeypatch.setattr(Path, "is_file", lambda _: next(seen))
    (other / "points").mkdir(parents=True)
    staging.claim(other)


def test_sweeps_at_once_in_one_directory_agree(short: Path) -> None:
    short.write_text(f"{SHORT}\n[sweep]\nseed = [1, 2, 3, 4, 5, 6]\n")
    sweeps = [start(short, "sweep", "small.toml", "--out", "s", "--jobs", "2") for _ in range(3)]
    ends = [(s.communicate(timeout=300), s.returncode) for s in sweeps]
    assert [code for _, code in ends] == [0, 0, 0], ends
    assert len({out for (out, _), _ in ends}) == 1
    folder = short.parent / "s"
    assert sorted(p.name for p in folder.iterdir()) == [".firstlight", "points", "sweep.csv", "sweep.json"]
    assert len(list((folder / "points").iterdir())) == 6


def test_directories_replaced_by_many_at_once_are_whole(tmp_path: Path) -> None:
    class One:
        def write(self, directory: Path) -> None:
            for name in "abc":
                (directory / name).write_text("x")

    def replace() -> None:
        for _ in range(30):
            with staging.Staging(tmp_path / "t") as stage:
                stage.commit(One())

    threads = [threading.Thread(target=replace) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert tree(tmp_path) == {f"t/{name}": b"x" for name in "abc"}


# Texts and numbers


def test_brackets_in_names_are_no_markup(short: Path, command: Command, tmp_path: Path) -> None:
    short.write_text(SHORT.replace('"small"', '"[red]a[bold] :smile: [link=x]"'))
    done = command("run", short, "--out", "r")
    assert done.returncode == 0, done.stderr
    assert "[red]a[bold] :smile: [link=x]" in done.stdout


def test_dollars_in_names_are_no_formulas(short: Path, tmp_path: Path) -> None:
    from firstlight.pages import report

    short.write_text(SHORT.replace('"small"', r"'$\frac{$ $x_$'"))
    axes: dict[str, list[object]] = {"seed": [1, 2], "tcp.cc": ["cubic", "dctcp"]}
    done = fl.sweep(short, axes=axes, out=tmp_path / "s")
    assert report.write_sweep(done).is_file()


def test_output_that_cannot_be_written_is_one_line(command: Command) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            argv(["schema"]), stdout=full, stderr=subprocess.PIPE, text=True, check=False, env=environment()
        )
    assert done.returncode == 1
    assert done.stderr.splitlines() == ["error: standard output: No space left on device"]


@pytest.mark.parametrize("words", ["run small.toml", "sweep sweep.toml", "inspect small.toml"])
@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-", "2>/dev/full"])
def test_standard_streams_may_be_closed(short: Path, words: str, closed: str) -> None:
    (short.parent / "sweep.toml").write_text(f"{SHORT}\n[sweep]\nseed = [1, 2]\n")
    line = f'"{sys.executable}" -m firstlight {words} {closed}'
    done = subprocess.run(
        ["bash", "-c", line], cwd=short.parent, capture_output=True, text=True, check=False, env=environment()
    )
    assert done.returncode == 0 and "Traceback" not in done.stderr
    assert (short.parent / "results").is_dir() == (not words.startswith("inspect"))


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_any_locale_will_do(short: Path, encoding: str) -> None:
    short.write_text(SHORT.replace('"small"', '"\u00b5\u2192"'), encoding="utf-8")
    done = subprocess.run(
        argv(["run", short, "--out", short.parent / "r"]),
        capture_output=True,
        check=False,
        env={**environment(), "PYTHONIOENCODING": encoding, "LC_ALL": "C", "PYTHONUTF8": "0"},
    )
    assert done.returncode == 0, done.stderr
    assert b"Traceback" not in done.stderr


def test_file_names_that_are_no_text_are_named(short: Path) -> None:
    wrong = os.fsencode(short.parent) + b"/a\xff.toml"
    os.rename(short, wrong)
    done = subprocess.run(
        [*argv(["run"]), wrong], capture_output=True, text=True, check=False, env=environment()
    )
    assert done.returncode == 2
    assert "not UTF-8" in done.stderr and "Traceback" not in done.stderr


def test_the_present_directory_may_have_a_name_that_is_no_text(short: Path) -> None:
    place = Path(f"{short.parent}/a\udcff")
    place.mkdir()
    (place / "x.toml").write_text(f"{SHORT}\n[sweep]\nseed = [1, 2]\n")
    for words in (["run", str(short), "--capture", "--out", "r"], ["report", "r"], ["sweep", "x.toml"]):
        done = subprocess.run(
            argv(words), cwd=place, capture_output=True, text=True, check=False, env=environment()
        )
        assert done.returncode == 0, done.stderr
    assert fl.load(place / "r").capture is not None


def test_a_byte_order_mark_is_accepted(short: Path, tmp_path: Path) -> None:
    plain = fl.run(short).digest
    short.write_text(SHORT, encoding="utf-8-sig")
    assert fl.run(short).digest == plain


def test_endless_files_are_refused(short: Path) -> None:
    with pytest.raises(fl.SpecError, match="larger than"):
        fl.run("/dev/zero")
    os.mkfifo(short.parent / "fifo")
    for file in ("/dev/zero", "fifo"):
        short.write_text(f'{SHORT}[[workload]]\nkind = "file"\nfile = "{file}"\n')
        with pytest.raises(fl.SpecError, match="a pipe or a device: name a file"):
            fl.run(short)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["rerun", "/dev/zero"], "/dev/zero: not a bundle"),
        (["rerun", "fifo"], "fifo: not a bundle"),
        (["bundle", "r", "--out", "/dev/zero"], "/dev/zero: exists and is not a bundle"),
        (["schedule", "/dev/zero"], "/dev/zero: larger than 64 MiB"),
        (["kernel", "build", "--patch", "/dev/zero"], "/dev/zero: is no file"),
    ],
)
def test_no_command_reads_without_end(short: Path, words: list[str], said: str) -> None:
    """Within 4 GB of addresses, and at once: what has no end took all memory, or waited for a writer."""
    os.mkfifo(short.parent / "fifo")
    fl.run(short, out=short.parent / "r")
    limited = ["bash", "-c", 'ulimit -v 4000000; exec "$@"', "bash", *argv(words)]
    done = subprocess.run(
        limited, cwd=short.parent, env=environment(), capture_output=True, text=True, check=False, timeout=60
    )
    assert said in done.stderr and len(done.stderr.splitlines()) == 1


def test_numpy_s_numbers_and_arrays_are_values(short: Path, tmp_path: Path) -> None:
    axes = {"seed": np.arange(1, 3), "voq.small": [np.int64(8)]}
    done = fl.sweep(short, axes=axes, out=tmp_path / "s", jobs=np.int64(1))  # type: ignore[arg-type]
    assert list(done.frame["seed"]) == [1, 2]
    assert fl.run(short, {"measure.pair": np.array([1, 0])}).manifest["spec"]["measure"]["pair"] == [1, 0]


@pytest.mark.parametrize(
    "words",
    [
        ["report", "x" * 300],
        ["diff", "x" * 300, "x"],
        ["bundle", "x" * 300],
        ["rerun", "d/" * 3000],
        ["schedule", "x" * 300],
        ["cc", "check", "x" * 300],
        ["live", "x" * 300],
        ["run", "x" * 300],
        ["explain", "x" * 300],
        ["compare", "x" * 300],
    ],
    ids=lambda words: words[0],
)
def test_a_name_that_no_file_can_have_is_refused(command: Command, words: list[str]) -> None:
    done = command(*words)
    assert done.returncode == 2, done.stderr
    assert "too long" in done.stderr and "Errno" not in done.stderr and len(done.stderr) < 1000
    with pytest.raises(fl.SpecError, match="File name too long"):
        fl.read_demand("y" * 300)


def test_a_list_in_itself_is_an_error(short: Path) -> None:
    round_and_round: list[object] = []
    round_and_round.append(round_and_round)
    with pytest.raises(fl.SpecError, match="flows: it is nested more than 100 times"):
        fl.run(short, {"flows": round_and_round})


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        ({"seed": 2**70}, "seed: the number 1180591620717411303424 is too large"),
        ({"seed": 10**5000}, "seed: a number of 16610 bits is too large"),
        ({"seed": None, "warmup": "0s", "tcp.frto": None}, "the file has no tcp.frto"),
        ({"seed": object()}, "override seed: expected"),
        ({"seed": {1: 2}}, "override seed: the key 1 is not a text"),
        ({3: 4}, "override 3: the name of a key is a text"),
        ("duration=1ms", "write keys with their values"),
        ({"name": "\udcff"}, "not Unicode"),
        ({"duration": '"1ms"'}, "write duration=1ms without them"),
    ],
)
def test_wrong_overrides_are_errors_of_the_experiment(
    short: Path, overrides: dict[str, object], said: str
) -> None:
    with pytest.raises(fl.SpecError, match=said):
        fl.run(short, overrides)


def test_wrong_arguments_are_named(short: Path, tmp_path: Path, command: Command) -> None:
    for wrong in ({"axes": ["seed"]}, {"axes": {"seed": [1]}, "executor": 3}):
        with pytest.raises(fl.PlanError, match=r"keys with their values|executor = 3: give one"):
            fl.sweep(short, out=tmp_path / "s", **wrong)
    numbers: dict[str, Any] = {"jobs": 1.5, "seeds": "3", "patience": "1m"}
    for key, value in numbers.items():
        with pytest.raises(fl.PlanError, match=f"{key} = {value!r}: "):
            fl.sweep(short, axes={}, out=tmp_path / "s", **{key: value})
    others: list[dict[str, Any]] = [{"mode": "fast"}, {"hosts": ["linux", "bsd"]}]
    for other in others:
        with pytest.raises(
            fl.PlanError, match=r"'(fast|bsd)': write quick or full as mode, simulated or linux"
        ):
            fl.reproduce("timers", out=tmp_path / "r", **other)
    for jobs in (0, -1, True):
        with pytest.raises(fl.PlanError, match="jobs"):
            fl.sweep(short, axes={"seed": [1]}, out=tmp_path / "s", jobs=jobs)
    for patience in (0.0, -1.0, float("nan")):
        with pytest.raises(fl.PlanError, match="patience"):
            fl.run(short, patience=patience)
    done = command("run", short, "--patience", "nan")
    assert done.returncode == 2 and "patience" in done.stderr
    assert not (tmp_path / "s").exists()


def test_a_completed_flow_is_not_said_to_be_silent(short: Path) -> None:
    short.write_text(
        SHORT.replace('jitter = "100us"', 'size = "1kB"').replace('warmup = "4800us"', 'warmup = "0s"')
    )
    result = fl.run(short)
    assert np.isfinite(result.flows["fct_us"]).all()
    assert not [w for w in result.warnings if "never had data acknowledged" in w]


def test_programs_whose_outputs_have_one_name_are_refused(short: Path) -> None:
    programs = "".join(
        f'[[program]]\non = "host0"\nrun = "true"\nname = "{name}"\n' for name in ("a", "a.out")
    )
    short.write_text(f"{SHORT}\n{programs}")
    with pytest.raises(fl.SpecError, match=r"'a\.out' is the file of what program 'a' prints"):
        fl.inspect(short, {"hosts.kind": "linux"})


def test_a_broken_kernel_does_not_hide_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for name, text in (("broken", "{"), ("other", '{"version": 3}')):
        (kernels.folder() / name).mkdir(parents=True)
        (kernels.folder() / name / kernels.MANIFEST).write_text(text)
    assert kernels.built() == []
    assert len(kernels.broken()) == 2
    damaged = [c for c in doctor.virtual() if c.name == "damaged kernel"]
    assert len(damaged) == 2 and all("remove" in c.todo for c in damaged)


def test_a_run_directory_of_a_killed_process_is_cleared_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(directory, "place", lambda _: tmp_path)
    left = tmp_path / f"{directory.PREFIX}x"
    left.mkdir()
    (left / "lock").touch()
    newborn = tmp_path / f"{directory.PREFIX}y"
    newborn.mkdir()
    with directory.RunDirectory(1) as one, directory.RunDirectory(1) as other:
        assert not left.exists() and newborn.exists()
        assert one.path.exists() and other.path.exists()
    assert list(tmp_path.iterdir()) == [newborn]


def test_figures_are_drawn_whatever_backend_matplotlib_is_to_have(
    short: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MPLBACKEND", "module://of_a_notebook_that_is_not_here")
    fl.run(short, out=short.parent / "r")
    assert "report.html" in command("report", "r").stdout
    monkeypatch.setenv("MPLBACKEND", "nonsense")
    assert "report.html" in command("report", "r").stdout


@pytest.mark.parametrize(
    ("code", "console", "said"),
    [
        (0, "Checking that seccomp filters can be installed...OK", "a program switched the hosts off"),
        (134, "Out of memory: Killed process 7\nKernel panic - not syncing", "the hosts' memory is full"),
        (134, "Kernel panic - not syncing: Attempted to kill init!\nx", "Attempted to kill init"),
    ],
)
def test_the_end_of_a_guest_is_explained(tmp_path: Path, code: int, console: str, said: str) -> None:
    run = directory.RunDirectory(1)
    run.path = tmp_path
    (tmp_path / directory.CONSOLE).write_text(console)
    process = subprocess.Popen(["sh", "-c", f"exit {code}"])
    process.wait()
    assert said in guest.early_end(process, run, 10**9)


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize(
    ("entry", "also"),
    [
        ("run = '''FILL'''", "; program filler on host0 .* ended with exit code 137 "),
        ("server = true\nrun = '''FILL'''", "; its logs are in "),
        ("run = '''FILL; true'''", "; its logs are in "),
    ],
    ids=["program", "server", "child"],
)
def test_a_guest_that_fills_memory_says_so(tmp_path: Path, entry: str, also: str) -> None:
    file = tmp_path / "full.toml"
    fill = """python3 -c "filled = [b'1' * 2**20 for _ in iter(int, 1)]" """
    file.write_text(f"""
duration = "1s"
hosts = {{ kind = "linux", rate = "10Gbps", delay = "1us" }}
fabric = {{ kind = "star", hosts = 2 }}
linux.memory = "256MB"
[[program]]
name = "other"
on = "host1"
run = "sleep 0.9"
[[program]]
name = "filler"
on = "host0"
{entry.replace("FILL", fill)}
""")
    said = (
        r"^the hosts' memory is full, so that the kernel ended 'python3' of program filler: give them more .*"
    )
    with pytest.raises(fl.RunError, match=said + also):
        fl.run(file)


# Tools


def start(file: Path, *words: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        argv(words),
        cwd=file.parent,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heeds_signals,
    )


def heeds_signals() -> None:
    """Undo what a shell's ``&`` and ``nohup`` have made the tests ignore."""
    for one in (signal.SIGINT, signal.SIGHUP):
        signal.signal(one, signal.SIG_DFL)


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline, "waited two minutes in vain"
        time.sleep(0.02)
