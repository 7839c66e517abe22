"""Sweeps: every point once, resumable, the same whatever the number of jobs, and safe to interrupt."""

import contextlib
import functools
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import firstlight as fl
import pandas as pd
import pytest
from conftest import SMALL, Command, argv, environment
from firstlight.runs import forkserver, pool, sweep
from firstlight.runs.staging import Staging

AXES = {"voq.small": [4, 8, 16], "seed": [1, 2]}


def test_every_combination_is_run_once(small: Path, tmp_path: Path) -> None:
    done = fl.sweep(small, axes=AXES, out=tmp_path / "s")
    assert len(done.frame) == 6
    assert done.frame["digest"].nunique() == 6
    assert list(done.frame["voq.small"]) == [4, 4, 8, 8, 16, 16]
    reopened = fl.load_sweep(tmp_path / "s")
    assert list(reopened.frame["digest"]) == list(done.frame["digest"])
    pd.testing.assert_frame_equal(done.frame, reopened.frame)  # rows of the workers, and of their results


def test_seeds_give_means_with_intervals(small: Path, command: Command, tmp_path: Path) -> None:
    """The experiment's own seed is 7."""
    done = fl.sweep(small, axes={"voq.small": [4, 8]}, seeds=3, out=tmp_path / "s")
    assert list(done.frame["seed"]) == [7, 8, 9] * 2
    means = done.means
    assert list(means["voq.small"]) == [4, 8]
    values = done.frame["goodput_gbps"][:3].to_numpy()
    assert means["goodput_gbps"][0] == pytest.approx(values.mean())
    assert means["goodput_gbps +-"][0] == pytest.approx(4.303 * values.std(ddof=1) / 3**0.5)
    ran = command("run", small, "--seeds", "2", "--out", "two")
    assert ran.returncode == 0, ran.stderr
    assert "means of 2 seeds" in ran.stdout
    assert len(fl.load_sweep(tmp_path / "two").results) == 2
    refused = command("sweep", small, "--seeds", "2", "--set", "seed=1")
    assert refused.returncode == 2
    assert "no [sweep] table" in refused.stderr
    with pytest.raises(fl.PlanError, match="has an axis seed: take it out"):
        fl.sweep(small, axes={"seed": [1, 2]}, seeds=2, out=tmp_path / "t")


def test_jobs_do_not_change_results(small: Path, tmp_path: Path) -> None:
    one = fl.sweep(small, axes=AXES, out=tmp_path / "one", jobs=1)
    three = fl.sweep(small, axes=AXES, out=tmp_path / "three", jobs=3)
    assert list(one.frame["digest"]) == list(three.frame["digest"])
    assert one.results[0].digest == fl.run(small, one.settings[0]).digest


def test_finished_points_are_not_run_again(small: Path, tmp_path: Path) -> None:
    ran: list[str] = []

    def listen(point: pool.Point, event: pool.Event, fraction: float) -> None:
        if event == "done":
            ran.append(point.label)

    fl.sweep(small, axes={"voq.small": [4, 8]}, out=tmp_path / "s", listener=listen)
    assert sorted(ran) == ["voq.small=4", "voq.small=8"]
    ran.clear()
    fl.sweep(small, axes={"voq.small": [4, 8, 16]}, out=tmp_path / "s", listener=listen)
    assert ran == ["voq.small=16"]
    ran.clear()
    small.write_text(SMALL.replace("seed = 7", "seed = 8"))
    fl.sweep(small, axes={"voq.small": [4]}, out=tmp_path / "s", listener=listen)
    assert ran == ["voq.small=4"]


NETWORK = "switch s\nhost a s 10Gbps 1us\nhost b s 10Gbps {delay}\n"
LISTED = """\
duration = "100ms"

[fabric]
kind = "graph"
file = "net.txt"

[[workload]]
kind = "poisson"
load = 0.01
sizes = "sizes.txt"

[[workload]]
kind = "file"
file = "flows.txt"
"""


@pytest.mark.parametrize("after", ["", '\n[hosts]\nrate = "10Gbps"\ndelay = "5us"\n'])
def test_more_values_in_the_file_leave_finished_points_finished(tmp_path: Path, after: str) -> None:
    star = '[fabric]\nkind = "star"\nhosts = 4\n\n[[workload]]\nkind = "permutation"\nsize = "10kB"\n'
    before = star if after else f'{star}\n[hosts]\nrate = "10Gbps"\ndelay = "5us"\n'
    file = tmp_path / "s.toml"
    keys = []
    for seeds in ("[1, 2]", "[\n  1,\n  2, # more\n  3,\n]"):
        file.write_text(f'duration = "1ms"\n{before}\n [ sweep ] # here\nseed = {seeds}\n{after}')
        keys.append([p.key for p in sweep.plan(file).points])
    assert (keys[0] == keys[1][:2]) == (not after)  # behind the table, lines have moved
    file.write_text(file.read_text().replace("3,", "4,"))
    assert [p.key for p in sweep.plan(file).points][:2] == keys[1][:2]
    file.write_text(f"{before}{after}".replace("10kB", "10zB") + "[sweep]\nseed = [1]\n")
    with pytest.raises(fl.SpecError, match=f":{file.read_text().split('10zB')[0].count(chr(10)) + 1}:"):
        sweep.plan(file)


@pytest.mark.parametrize(
    "table", ['[sweep.tcp]\ncc = ["cubic"]\n', '[sweep]\n"name" = ["""\n[b]\n"""]\n', "sweep.seed = [1]\n"]
)
def test_a_table_that_cannot_be_cut_out_stays(small: Path, table: str) -> None:
    text = f"{table}{SMALL}" if table.startswith("sweep") else f"{SMALL}\n{table}"
    small.write_text(text)
    spec = fl.core.Spec.read(small, sweep=True)
    assert sweep.without_axes(spec).text == text


def test_a_point_is_run_again_when_a_file_has_changed(tmp_path: Path) -> None:
    """The files that an experiment names (a network, flow sizes, a list of flows) are part of its key."""
    files = {
        "net.txt": (NETWORK.format(delay="1us"), NETWORK.format(delay="2us")),
        "sizes.txt": ("1000 0\n9000 1\n", "1000 0\n9999 1\n"),
        "flows.txt": ("1\n0 1 3 100 5000 0\n", "1\n0 1 3 100 6000 0\n"),
    }
    file = tmp_path / "listed.toml"
    file.write_text(LISTED)
    for name, (before, _) in files.items():
        (tmp_path / name).write_text(before)

    def keys() -> list[str]:
        done = fl.sweep(file, axes={"seed": [1]}, out=tmp_path / "s")
        assert set(done.results[0].manifest["inputs"]) == set(files)
        return [p.name for p in (tmp_path / "s" / "points").iterdir()]

    known = keys()
    assert keys() == known
    for count, (name, (before, after)) in enumerate(files.items(), start=2):
        (tmp_path / name).write_text(after)
        assert len(keys()) == count, f"{name} was changed"
        (tmp_path / name).write_text(before)
        assert len(keys()) == count, f"{name} is as it was"


def test_the_command_sweeps_the_file_s_table(small: Path, command: Command, tmp_path: Path) -> None:
    small.write_text(f"{SMALL}\n[sweep]\nvoq.small = [4, 8]\n")
    done = command("sweep", small, "--jobs", "2")
    assert done.returncode == 0, done.stderr
    assert "0 of them finished before" in done.stderr
    assert (tmp_path / "results" / "small" / "sweep.csv").read_text().startswith("voq.small,")
    again = command("sweep", small)
    assert "2 of them finished before" in again.stderr
    assert again.stdout == done.stdout


def test_a_result_goes_to_a_worker_without_its_frames(small: Path, tmp_path: Path) -> None:
    result = fl.run(small, out=tmp_path / "r")
    before = len(pickle.dumps(result))
    assert pool.mapped(_flows, [result], jobs=1) == [len(result.table("flows"))]
    assert len(pickle.dumps(result)) < before + 100


def _flows(result: fl.Result) -> int:
    return len(result.table("flows"))


def test_functions_are_called_by_workers() -> None:
    """Answers come in the order of the items. What a function raises is raised here, by name if it is ours; a
    worker that dies says so."""
    assert pool.mapped(str, range(20), jobs=2) == [str(i) for i in range(20)]
    assert pool.mapped(str, [], jobs=2) == []
    assert len(set(pool.mapped(_process, range(8), jobs=1))) == 1
    with pytest.raises(fl.errors.ResultError, match="no result"):
        pool.mapped(_refuse, range(4), jobs=2)
    with pytest.raises(fl.errors.RunError, match="ZeroDivisionError"):
        pool.mapped(_divide, [0])
    with pytest.raises(fl.errors.RunError, match=r"ended \(exit code 3\)"):
        pool.mapped(os._exit, [3])


def _process(_: int) -> int:
    return os.getpid()


def _refuse(_: int) -> None:
    raise fl.errors.ResultError("no result")


def _divide(by: int) -> float:
    return 1 / by


def test_a_failing_point_is_named_and_the_others_kept(small: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    good = pool.Point(fl.core.Spec.read(small), "good")
    late = tmp_path / "late.toml"
    late.write_text(small.read_text() + '\n[[workload]]\nkind = "file"\nfile = "flows.txt"\n')
    flows = tmp_path / "flows.txt"
    flows.write_text("1\n0 1 3 100 1000 0.001\n")
    bad = pool.checked([pool.Point(fl.core.Spec.read(late), "the bad one")])[0]
    flows.unlink()
    with pytest.raises(fl.SpecError, match="the bad one"):
        pool.run_all([good, bad], store, pool.Means(jobs=1))
    assert [p.name for p in store.iterdir()] == [good.key]


def test_a_dead_worker_names_its_point_and_the_next_sweep_works(small: Path, tmp_path: Path) -> None:
    def kill_one() -> None:
        wait_for(lambda: bool(workers_of(os.getpid())) and any((tmp_path / "s" / "points").iterdir()))
        os.kill(workers_of(os.getpid())[0], signal.SIGKILL)

    killer = threading.Thread(target=kill_one)
    killer.start()
    with pytest.raises(fl.RunError, match=r"duration=2000s: the worker process ended \(exit code -9\)"):
        fl.sweep(small, axes={"duration": ["2000s"]}, out=tmp_path / "s", jobs=1)
    killer.join()
    assert list((tmp_path / "s" / "points").iterdir()) == []
    assert len(fl.sweep(small, axes={"duration": ["12ms"]}, out=tmp_path / "s").results) == 1


def test_a_sweep_after_the_server_of_workers_was_killed_starts_another(small: Path, tmp_path: Path) -> None:
    fl.sweep(small, axes={"seed": [1]}, out=tmp_path / "s")
    for pid in children(os.getpid()):
        with contextlib.suppress(ProcessLookupError):  # `ps` itself has ended
            os.kill(pid, signal.SIGKILL)
            wait_for(functools.partial(lambda p: not alive(p), pid))
    assert len(fl.sweep(small, axes={"seed": [1, 2]}, out=tmp_path / "s").results) == 2


def test_a_request_that_is_interrupted_leaves_no_worker(
    small: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    fl.sweep(small, axes={"seed": [1]}, out=tmp_path / "s")
    server = next(pid for pid in children(os.getpid()) if "forkserver" in command_of(pid))
    os.kill(server, signal.SIGSTOP)  # it answers when the caller has given up
    waiting = threading.main_thread().ident
    assert waiting is not None
    threading.Timer(0.3, lambda: signal.pthread_kill(waiting, signal.SIGINT)).start()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job may ignore it
    try:
        with pytest.raises(KeyboardInterrupt):
            forkserver.Child()
    finally:
        signal.signal(signal.SIGINT, before)
    os.kill(server, signal.SIGCONT)
    assert len(fl.sweep(small, axes={"seed": [1, 2]}, out=tmp_path / "s").results) == 2
    wait_for(lambda: not any(alive(pid) for pid in children(server)))
    assert capfd.readouterr().err == ""


def test_workers_have_the_present_directory_and_environment(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fl.sweep(small, axes={"seed": [1]}, out=tmp_path / "a")  # the server has started by now
    (tmp_path / "b").mkdir()
    monkeypatch.chdir(tmp_path / "b")
    monkeypatch.setenv("FIRSTLIGHT_TEST", "é")
    child = forkserver.Child()
    try:
        wait_for(lambda: os.readlink(f"/proc/{child.number}/cwd") == str(tmp_path / "b"))
        assert len(fl.sweep("../small.toml", axes={"seed": [1, 2]}, out="s").results) == 2
        assert (tmp_path / "b" / "s" / "sweep.csv").is_file()
    finally:
        child.end()
        with child.stdin, child.stdout:
            pass


def test_modules_beside_the_caller_are_not_imported_by_workers(small: Path, tmp_path: Path) -> None:
    for name in ("json", "queue", "secrets", "pyarrow"):
        (tmp_path / f"{name}.py").write_text("raise RuntimeError('not the standard one')\n")
    call = f"fl.sweep({str(small)!r}, axes={{'seed': [1]}})"
    script = f"import sys; sys.path.pop(0); import firstlight as fl; {call}"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_ctrl_c_keeps_what_is_finished_and_leaves_nothing_else(small: Path, tmp_path: Path) -> None:
    small.write_text(f'{SMALL}\n[sweep]\nduration = ["12ms", "2000s"]\n')
    sweep = subprocess.Popen(
        argv(["sweep", "small.toml", "--out", "s", "--jobs", "2"]),
        cwd=tmp_path,
        env=environment(),
        stderr=subprocess.PIPE,
        text=True,
    )
    points = tmp_path / "s" / "points"
    wait_for(lambda: points.is_dir() and finished(points) == 1 and len(list(points.iterdir())) == 2)
    workers = children(sweep.pid) + workers_of(sweep.pid)
    assert workers
    sweep.send_signal(signal.SIGINT)
    _, errors = sweep.communicate(timeout=60)
    assert sweep.returncode == 130
    assert "interrupted" in errors
    assert "Traceback" not in errors
    assert finished(points) == len(list(points.iterdir())) == 1
    wait_for(lambda: not any(alive(pid) for pid in workers))


def test_workers_die_with_a_killed_sweep_and_leftovers_are_cleared(small: Path, tmp_path: Path) -> None:
    small.write_text(f'{SMALL}\n[sweep]\nduration = ["2000s", "12ms"]\n')
    sweep = subprocess.Popen(
        argv(["sweep", "small.toml", "--out", "s", "--jobs", "1"]), cwd=tmp_path, env=environment()
    )
    points = tmp_path / "s" / "points"
    wait_for(lambda: points.is_dir() and any(points.iterdir()))
    workers = children(sweep.pid) + workers_of(sweep.pid)
    sweep.kill()
    sweep.wait()
    wait_for(lambda: not any(alive(pid) for pid in workers))
    fl.sweep(small, axes={"duration": ["12ms"]}, out=tmp_path / "s")
    assert finished(points) == len(list(points.iterdir())) == 1


def test_ctrl_c_of_a_run_leaves_nothing(small: Path, tmp_path: Path) -> None:
    run = subprocess.Popen(
        argv(["run", "small.toml", "--set", "duration=2000s", "--out", "r"]),
        cwd=tmp_path,
        env=environment(),
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for(lambda: len(list(tmp_path.iterdir())) == 2)
    run.send_signal(signal.SIGINT)
    _, errors = run.communicate(timeout=60)
    assert run.returncode == 130
    assert "Traceback" not in errors
    assert [p.name for p in tmp_path.iterdir()] == ["small.toml"]


def test_ctrl_c_while_the_directory_is_made_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Path.mkdir

    def interrupted(path: Path, *args: Any, **options: Any) -> None:
        made(path, *args, **options)
        if path.parent == tmp_path:
            raise KeyboardInterrupt

    monkeypatch.setattr(Path, "mkdir", interrupted)
    with pytest.raises(KeyboardInterrupt), Staging(tmp_path / "r"):
        pass
    assert not list(tmp_path.iterdir())


def finished(points: Path) -> int:
    return sum((p / "manifest.json").is_file() and not p.name.startswith(".") for p in points.iterdir())


def children(pid: int) -> list[int]:
    found = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False
    )
    return [int(word) for word in found.stdout.split()]


def command_of(pid: int) -> str:
    """The words of a process's command; none of one that has ended."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode()
    return ""


def workers_of(pid: int) -> list[int]:
    """The workers that a process has had started."""
    return [worker for server in children(pid) for worker in children(server)]


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


def wait_for(condition: "object") -> None:
    assert callable(condition)
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline, "waited two minutes in vain"
        time.sleep(0.02)
