"""Sweeps on executors and in shards: the same results, whoever runs the points."""

import json
import multiprocessing
import os
import pickle
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import firstlight as fl
import pytest
from conftest import SMALL, Command
from firstlight.linux import kernels
from firstlight.runs import grid, leftovers, remote, sweep
from firstlight.runs.pool import Means
from firstlight.runs.shards import Shard

AXES = {"voq.small": [8, 16], "seed": [1, 2]}


@pytest.fixture
def short(small: Path) -> Path:
    small.write_text(SMALL.replace('"24ms"', '"12ms"') + '\n[sweep]\n"voq.small" = [8, 16]\nseed = [1, 2]\n')
    return small


@pytest.fixture(scope="module")
def processes() -> Iterator[Executor]:
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as executor:
        yield executor


def test_an_executor_gives_what_local_processes_give(
    short: Path, tmp_path: Path, processes: Executor
) -> None:
    heard: list[str] = []
    local = fl.sweep(short, axes=AXES, out=tmp_path / "local", jobs=2)
    there = fl.sweep(
        short,
        axes=AXES,
        out=tmp_path / "there",
        executor=processes,
        listener=lambda p, e, _: heard.append(f"{p.label} {e}"),
    )
    assert list(there.frame["digest"]) == list(local.frame["digest"])
    assert sorted(heard) == sorted(f"voq.small={v} seed={s} done" for v in (8, 16) for s in (1, 2))
    assert not list((tmp_path / "there" / "points").glob(".*"))
    again: list[str] = []
    fl.sweep(
        short,
        axes=AXES,
        out=tmp_path / "there",
        executor=processes,
        listener=lambda p, *_: again.append(p.label),
    )
    assert again == []


def test_results_come_back_from_workers_that_do_not_see_the_directory(
    short: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Elsewhere(ThreadPoolExecutor):
        def submit(self, call: Any, task: Any, /, *_: Any, **__: Any) -> "Future[Any]":  # type: ignore[override]
            return super().submit(call, {**task, "token": "/nowhere", "target": "/nowhere/x"})

    with Elsewhere(2) as executor:
        there = fl.sweep(short, axes=AXES, out=tmp_path / "s", executor=executor)
    assert list(there.frame["digest"]) == list(fl.sweep(short, axes=AXES, out=tmp_path / "l").frame["digest"])
    assert not Path("/nowhere").exists()


class Failing(Executor):
    """An executor whose workers die at the first tasks."""

    def __init__(self, deaths: int) -> None:
        self.deaths = deaths

    def submit(self, call: Any, /, *args: Any, **_: Any) -> "Future[Any]":
        future: Future[Any] = Future()
        if self.deaths > 0:
            self.deaths -= 1
            future.set_exception(OSError("the worker is gone"))
        else:
            future.set_result(call(*args))
        return future


def test_a_point_whose_worker_dies_is_run_again(short: Path, tmp_path: Path) -> None:
    assert len(fl.sweep(short, axes=AXES, out=tmp_path / "s", executor=Failing(2)).frame) == 4
    with pytest.raises(fl.RunError, match="failed 3 times: OSError"):
        fl.sweep(short, axes=AXES, out=tmp_path / "t", executor=Failing(1000))


def test_a_worker_with_another_build_or_other_files_refuses(short: Path, tmp_path: Path) -> None:
    class Other(Failing):
        def submit(self, call: Any, task: Any, /, *_: Any, **__: Any) -> "Future[Any]":  # type: ignore[override]
            return super().submit(call, {**task, "key": "0" * 32, "build": self.build})

        build = "0.0.1+other"

    with pytest.raises(fl.RunError, match=r"has another build .* than the sweep \(0.0.1\+other\)"):
        fl.sweep(short, axes=AXES, out=tmp_path / "s", executor=Other(0))
    Other.build = fl.core.build()
    with pytest.raises(fl.RunError, match="another kernel of Linux hosts, or other files"):
        fl.sweep(short, axes=AXES, out=tmp_path / "s", executor=Other(0))


class Elsewhere(Executor):
    """Runs each task in a process of its own, which ``prefix`` starts in another environment."""

    def __init__(self, prefix: Sequence[str] = (), **environment: str) -> None:
        self.prefix = prefix
        self.environment = {**os.environ, **environment}

    def submit(self, call: Any, /, *args: Any, **_: Any) -> "Future[Any]":
        code = (
            "import pickle, sys; f, a = pickle.load(sys.stdin.buffer); pickle.dump(f(*a), sys.stdout.buffer)"
        )
        words = [*self.prefix, sys.executable, "-c", code]
        task = pickle.dumps((call, args))
        done = subprocess.run(words, input=task, env=self.environment, stdout=subprocess.PIPE, check=True)
        future: Future[Any] = Future()
        future.set_result(pickle.loads(done.stdout))
        return future


def test_a_process_with_another_core_refuses(short: Path, tmp_path: Path) -> None:
    package = tmp_path / "other" / "firstlight"
    package.mkdir(parents=True)
    for entry in Path(fl.core.__file__).parent.iterdir():
        if entry.name.startswith("_core."):
            (package / entry.name).write_bytes(entry.read_bytes() + b"another build")
        else:
            (package / entry.name).symlink_to(entry)
    elsewhere = Elsewhere(PYTHONPATH=str(package.parent))
    with pytest.raises(fl.RunError, match=r"^voq\.small=8 seed=1: the worker on .* has another build"):
        fl.sweep(short, axes=AXES, out=tmp_path / "s", executor=elsewhere)
    same = fl.sweep(short, axes=AXES, out=tmp_path / "s", executor=Elsewhere())
    assert list(same.frame["digest"]) == list(fl.sweep(short, axes=AXES, out=tmp_path / "l").frame["digest"])


def test_a_process_with_another_kernel_refuses(short: Path, tmp_path: Path, kernel: kernels.Kernel) -> None:
    other = tmp_path / "cache" / "kernels" / kernel.path.name.replace(kernel.version, "7.2.99")
    shutil.copytree(kernel.path, other)
    (other / "kernel.json").write_text(json.dumps({**kernel.manifest, "version": "7.2.99"}))
    with pytest.raises(fl.RunError, match=r"the worker on .* has another kernel of Linux hosts"):
        fl.sweep(
            short,
            {"hosts.kind": "linux"},
            axes=AXES,
            out=tmp_path / "s",
            executor=Elsewhere(FIRSTLIGHT_CACHE=str(tmp_path / "cache")),
        )


def test_a_process_with_too_little_memory_for_kernels_refuses(
    short: Path, tmp_path: Path, kernel: kernels.Kernel
) -> None:
    small = 'mount -t tmpfs -o size=64m none /dev/shm && exec "$@"'
    prefix = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", small, "sh"]
    with pytest.raises(fl.RunError, match=r"^voq\.small=8 seed=1: no room for a kernel: .* /dev/shm has 64"):
        fl.sweep(
            short,
            {"hosts.kind": "linux"},
            axes=AXES,
            out=tmp_path / "s",
            executor=Elsewhere(prefix, TMPDIR="/dev/shm"),
        )


def test_a_point_that_fails_on_a_worker_is_named(short: Path, tmp_path: Path, processes: Executor) -> None:
    flows = tmp_path / "flows.txt"
    flows.write_text("1\n0 4 3 100 1000 0\n")
    short.write_text(SMALL + '\n[[workload]]\nkind = "file"\nfile = "flows.txt"\n')
    plan = sweep.plan(short, axes={"seed": [1]}, out=tmp_path / "s")
    flows.unlink()
    with pytest.raises(fl.SpecError, match=r"^seed=1: .*flows.txt"):
        sweep.run_plan(plan, Means(executor=processes))


def test_running_points_end_when_the_sweep_has_ended(short: Path, tmp_path: Path) -> None:
    spec = fl.core.Spec.read(short, {"duration": "2000s"}, sweep=True)
    point = grid.Grid(spec, {"seed": [1]})[0]
    token = tmp_path / "token"
    token.touch()
    task = remote.Remote(Failing(0), iter([]), tmp_path / "points", Means())._task(point) | {
        "token": str(token)
    }
    with ThreadPoolExecutor(1) as executor:
        running = executor.submit(remote.run_task, task)
        while leftovers.live_in(tmp_path / "points") == 0:
            pass
        token.unlink()
        assert running.result(timeout=60) == ("RunError", "the sweep has ended")
    assert list((tmp_path / "points").iterdir()) == []


def test_dask_runs_a_sweep_and_outlives_a_worker(short: Path, tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    local = fl.sweep(short, axes=AXES, out=tmp_path / "local", jobs=2)
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, local_directory=str(tmp_path / "dask")
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        victim = next(iter(client.run(os.getpid).values()))
        killed: list[int] = []

        def kill_once(*_: Any) -> None:
            if not killed:
                killed.append(victim)
                os.kill(victim, signal.SIGKILL)

        there = fl.sweep(
            short,
            axes={**AXES, "seed": [1, 2, 3, 4]},
            out=tmp_path / "there",
            executor=client.get_executor(),
            listener=kill_once,
        )
    assert killed
    digests = set(there.frame["digest"])
    assert len(digests) == 8 and set(local.frame["digest"]) <= digests


# Shards


def test_shards_make_the_sweep_in_any_order_and_at_once(
    short: Path, command: Command, tmp_path: Path
) -> None:
    whole = fl.sweep(short, out=tmp_path / "whole")
    status = command("sweep", short, "--out", "s", "--status")
    assert status.stdout == "0 of 4 points finished, 0 running, 4 left\n"
    for part in ("3/3", "1/3"):
        done = command("sweep", short, "--out", "s", "--shard", part)
        assert done.returncode == 0, done.stderr
    early = command("sweep", short, "--out", "s", "--collect")
    assert early.returncode == 2 and "voq.small=8 seed=2: run the shards" in early.stderr
    assert command("sweep", short, "--out", "s", "--status").stdout.startswith("3 of 4")
    assert command("sweep", short, "--out", "s", "--shard", "2/3").returncode == 0
    collected = command("sweep", short, "--out", "s", "--collect")
    assert collected.returncode == 0, collected.stderr
    assert list(fl.load_sweep(tmp_path / "s").frame["digest"]) == list(whole.frame["digest"])


def test_a_shard_of_another_build_is_refused(
    short: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = sweep.plan(short, out=tmp_path / "s")
    sweep.run_shard(plan, Shard(1, 4), Means(jobs=1))
    monkeypatch.setattr(fl.core, "build", lambda: "0.0.1+other")
    with pytest.raises(fl.ResultError, match="its shards have the build"):
        sweep.run_shard(plan, Shard(2, 4), Means(jobs=1))


@pytest.mark.parametrize("text", ["", "1", "0/3", "4/3", "a/b", "1/0", "-1/3"])
def test_wrong_shards_are_named(text: str) -> None:
    with pytest.raises(fl.PlanError, match="such as 3/64"):
        Shard.parse(text)


def test_reproductions_have_shards_too(command: Command) -> None:
    words = ["reproduce", "hotspot", "--out", "r"]
    total = int(command(*words, "--status").stdout.split()[2])
    assert command(*words, "--shard", "1/1", "--jobs", "2").returncode == 0
    assert command(*words, "--status").stdout.startswith(f"{total} of {total} points finished")
    assert command(*words, "--collect", "--json").returncode == 0
    assert command(*words, "--collect", "--status").returncode == 2


def test_an_executor_reproduces_a_paper_s_figure(tmp_path: Path, processes: Executor) -> None:
    there = fl.reproduce("hotspot", out=tmp_path / "there", executor=processes)
    assert [score.claim.name for score in there.scores] == ["cee/hotspot"]
    local = fl.reproduce("hotspot", out=tmp_path / "local", jobs=2)
    digests = [[r.digest for r in done.outcomes[0].results.values()] for done in (there, local)]
    assert digests[0] == digests[1] and len(digests[0]) > 1
    with pytest.raises(fl.PlanError, match="no-such-figure"):
        fl.reproduce("no-such-figure")


# Large sweeps


def test_large_sweeps_are_planned_lazily_with_the_same_keys(
    short: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = fl.core.Spec.read(short, sweep=True)
    axes: dict[str, list[Any]] = {"seed": list(range(5)), "tcp.cc": ["cubic", "dctcp"], "voq.small": [8, 9]}
    small = grid.Grid(spec, axes)
    known = [p.key for p in small]
    monkeypatch.setattr(grid, "CHECKED", 1)
    large = grid.Grid(spec, axes)
    checked = []
    monkeypatch.setattr(fl.core.Spec, "check", lambda self: checked.append(self))
    assert [p.key for p in large] == known == [large[i].key for i in range(20)]
    assert [p.key for p in Shard(2, 3).of(large)] == known[1::3]
    assert [p.label for p in large] == [p.label for p in small]
    assert not checked


def test_files_of_large_sweeps_are_part_of_the_keys(
    short: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, size in (("a.txt", 5), ("b.txt", 6)):
        (tmp_path / name).write_text(f"1\n0 4 3 100 {size} 0\n")
    short.write_text(SMALL + '\n[[workload]]\nkind = "file"\nfile = "a.txt"\n')
    axes: dict[str, list[Any]] = {"seed": [1, 2], "workload.0.file": ["a.txt", "b.txt"]}
    spec = fl.core.Spec.read(short, sweep=True)
    known = [p.key for p in grid.Grid(spec, axes)]
    monkeypatch.setattr(grid, "CHECKED", 1)
    assert [p.key for p in grid.Grid(spec, axes)] == known
    (tmp_path / "b.txt").write_text("1\n0 4 3 100 7 0\n")
    changed = [p.key for p in grid.Grid(spec, axes)]
    assert [a == b for a, b in zip(known, changed, strict=True)] == [True, False, True, False]


def test_of_many_seeds_the_smallest_and_the_largest_are_checked(
    short: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = fl.core.Spec.read(short, sweep=True)
    checks: list[fl.core.Spec] = []
    check = fl.core.Spec.check

    def counted(spec: fl.core.Spec) -> fl.core.Experiment:
        checks.append(spec)
        return check(spec)

    monkeypatch.setattr(fl.core.Spec, "check", counted)
    assert len(grid.Grid(spec, {"seed": range(100_000)})) == 100_000
    assert len(checks) < 10
    for wrong in (-1, "x", 1.5):
        with pytest.raises(fl.SpecError, match="seed"):
            grid.Grid(spec, {"seed": [*range(3000), wrong]})


def test_too_many_points_and_wrong_values_are_refused(short: Path) -> None:
    spec = fl.core.Spec.read(short, sweep=True)
    with pytest.raises(fl.PlanError, match="10,000,000 points are more than 1,000,000"):
        grid.Grid(spec, {"seed": range(10**4), "voq.small": range(10**3)})
    with pytest.raises(fl.SpecError, match=r"voq\.small"):
        grid.Grid(spec, {"seed": range(2000), "voq.small": [8, 0]})
