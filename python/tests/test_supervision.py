"""Supervision of runs in a kernel, with a script that stands in for the kernel."""

import json
import math
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import firstlight as fl
import pytest
from conftest import SMALL, argv, environment
from firstlight import core
from firstlight.linux import directory, guest, installed, kernels, processes
from firstlight.runs.run import key

HERE = Path(__file__).parent
LINUX = {"hosts.kind": "linux"}


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cache whose kernel of 250 Hz is the script, and sources of our own that belong to it."""
    sources = tmp_path / "sources"
    (sources / "kernel").mkdir(parents=True)
    (sources / "kernel" / "firstlight.patch").write_text("")
    monkeypatch.setenv("FIRSTLIGHT_LINUX", str(sources))
    monkeypatch.setenv("FIRSTLIGHT_CACHE", str(tmp_path / "cache"))
    for name in ("ENGINE", "GUEST"):
        part = tmp_path / f"{name} with, a comma"
        part.write_text(name)
        monkeypatch.setattr(installed, name, part)
    installed.builds.cache_clear()
    kernel = kernels.folder() / f"7.2-hz250-{kernels.source_hash(250)}"
    (kernel / "modules").mkdir(parents=True)
    words = shlex.join([sys.executable, str(HERE / "fake_kernel.py")])
    (kernel / "linux").write_text(f'#!/bin/sh\nexec {words} "$@"\n')
    (kernel / "linux").chmod(0o755)
    told = {"version": "7.2", "hz": 250, "hash": kernels.source_hash(250), "seccomp": True, "patch": "p"}
    (kernel / "kernel.json").write_text(json.dumps({**told, "config": "c", "source": "s"}))
    yield tmp_path / "cache"
    installed.builds.cache_clear()


@pytest.fixture
def experiment(cache: Path, tmp_path: Path) -> Path:
    return write(tmp_path, "good")


@pytest.fixture(autouse=True)
def nothing_left(tmp_path: Path) -> Iterator[None]:
    """Checks that no test leaves a process or a run's directory; other runs on this machine are not
    counted."""
    yield
    deadline = time.monotonic() + 5
    while (left := processes_of(tmp_path)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert left == {}
    assert run_directories(tmp_path) == []


def write(folder: Path, mode: str, more: str = "") -> Path:
    file = folder / f"{mode}.toml"
    # A point of a sweep has the text without the lines of [sweep].
    file.write_text(f"# {folder}\n{SMALL.replace('small', mode, 1)}\n{more}")
    return file


def run_directories(folder: Path) -> list[Path]:
    """Run directories of the experiments in ``folder``."""
    texts = directory.place(1).glob(f"{directory.PREFIX}*/experiment.toml")
    return [t.parent for t in texts if str(folder) in t.read_text()]


def processes_of(folder: Path) -> dict[int, str]:
    """Stand-ins that belong to ``folder``, and what they started: their command lines."""
    ours = [str(folder / "cache"), *map(str, run_directories(folder))]
    found = {}
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = entry.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if any(name in words for name in ours):
            found[int(entry.parent.name)] = words
    return found


def test_an_outcome_becomes_a_result(experiment: Path, tmp_path: Path) -> None:
    seen: list[float] = []
    result = fl.run(experiment, LINUX, out=tmp_path / "r", progress=seen.append)
    assert result.digest == "00ff"
    assert math.isnan(result.summary["p99_all_us"])
    assert result.week["up"].tolist() == [True, False]
    assert result.week["index"].tolist() == [1, 2]
    assert result.programs == {"ping": "3 packets transmitted\n"}
    assert (tmp_path / "r" / "programs" / "ping.err").read_text() == ""
    kernel = result.manifest["kernel"]
    assert kernel["version"] == "7.2"
    assert kernel["mode"] == "seccomp"
    assert kernel["hash"] == kernels.source_hash(250)
    assert result.manifest["key"] == key(core.Spec.read(experiment, LINUX).check())
    assert seen == sorted(seen)
    assert seen[-1] == 0.5
    assert fl.run(experiment, LINUX).programs == result.programs
    assert result.save(tmp_path / "copy").programs == result.programs


def test_the_kernel_is_started_with_the_words_that_it_expects(experiment: Path) -> None:
    words = fl.run(experiment, LINUX).manifest["words"]
    run = "/proc/self/cwd"  # programs see these words, and the run's directory is another one in each run
    assert words["FIRSTLIGHT_RUN"] == run
    assert words["firstlight"] == f"{run}/engine.so,{run}"
    assert words["init"] == f"{run}/guest"
    assert words["time-travel"] == "inf-cpu"
    assert words["time-travel-start"] == str(guest.EPOCH_NS)
    assert words["firstlight_seed"] == "7"
    beta = fl.run(experiment, {**LINUX, "cubic.beta": 0.5}).manifest["words"]
    assert beta["tcp_cubic.beta"] == "512"
    retcp = fl.run(experiment, {**LINUX, "tcp.cc": "retcp"}).manifest["words"]
    assert not [word for word in retcp if word.startswith("retcp")], "its module is told when it is loaded"
    assert words["seccomp"] == "on"


def test_the_key_knows_the_kernel_and_the_engine(
    experiment: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def own() -> str:
        installed.builds.cache_clear()
        return key(core.Spec.read(experiment, LINUX).check())

    first = own()
    assert first == own() != key(core.Spec.read(experiment).check())
    for name in ("ENGINE", "GUEST"):
        other = tmp_path / f"other {name}"
        other.write_text("of another build")
        with monkeypatch.context() as patched:
            patched.setattr(installed, name, other)
            assert own() != first
    assert own() == first
    manifest = next(kernels.folder().glob("*/kernel.json"))
    told = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({**told, "version": "7.3"}))
    assert own() != first


FAILURES = [
    (
        "refuses",
        r"exit code 1 before the hosts were set up: firstlight: engine.so: the kernel has interface 1",
    ),
    ("panics", r"by SIGABRT at 0.012 s of 0.024 s: Kernel panic - not syncing: Attempted to kill init!"),
    ("dies", r"by SIGBUS at 0.012 s of 0.024 s: no memory left on "),
    ("fails", r"program ping on host0 ended with exit code 2; its logs are in "),
    ("forgets", r"exit code 0 at 0.012 s of 0.024 s: a program switched the hosts off"),
    ("babbles", r"outcome.json is not as expected: KeyError: 'tables'"),
    (
        "spins",
        r"stood still for 1 s, at 0.012 s of 0.024 s; the processor runs 'iperf3' \(pid 41\): a program",
    ),
    ("idles", r"stood still for 1 s, .* no program runs"),
    ("never-starts", r"the hosts were not set up within 1 s; the processor runs 'iperf3'"),
]


@pytest.mark.parametrize(("mode", "said"), FAILURES, ids=[f[0] for f in FAILURES])
def test_failures_say_why_and_keep_the_logs(cache: Path, tmp_path: Path, mode: str, said: str) -> None:
    file = write(tmp_path, mode)
    for _ in range(2):  # a second failure replaces the logs of the first
        with pytest.raises(fl.RunError, match=said) as raised:
            fl.run(file, LINUX, out=tmp_path / "r", patience=1)
    assert f"its logs are in {tmp_path / 'r.failed'}" in str(raised.value)
    kept = tmp_path / "r.failed"
    assert "Linux version 7.2" in (kept / "console.log").read_text()
    assert (kept / "plan.json").is_file()
    assert not (tmp_path / "r").exists()
    assert not list(tmp_path.glob(".r.*"))


def test_without_out_logs_are_kept_where_the_error_says(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(fl.RunError, match="its logs are in ") as raised:
        fl.run(write(tmp_path, "panics"), LINUX)
    assert (Path(str(raised.value).rpartition(" ")[2]) / "console.log").is_file()


def test_a_success_clears_the_logs_of_an_earlier_failure(cache: Path, tmp_path: Path) -> None:
    with pytest.raises(fl.RunError):
        fl.run(write(tmp_path, "fails"), LINUX, out=tmp_path / "r")
    fl.run(write(tmp_path, "good"), LINUX, out=tmp_path / "r")
    assert not (tmp_path / "r.failed").exists()
    (tmp_path / "r.failed").mkdir()
    (tmp_path / "r.failed" / "thesis.tex").touch()
    with pytest.raises(fl.RunError, match="its logs are in ") as raised:
        fl.run(tmp_path / "fails.toml", LINUX, out=tmp_path / "r")
    assert [f.name for f in (tmp_path / "r.failed").iterdir()] == ["thesis.tex"]
    shutil.rmtree(str(raised.value).rpartition(" ")[2])


def test_a_kernel_that_does_not_halt_is_ended(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guest, "EXIT_S", 0.3)
    assert fl.run(write(tmp_path, "lingers"), LINUX).digest == "00ff"


def test_a_missing_part_is_an_error_before_the_run(
    experiment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(fl.RunError, match="firstlight kernel build --hz 1000"):
        fl.run(experiment, {**LINUX, "tcp.tick": "1ms"})
    with monkeypatch.context() as patched:
        patched.setattr(installed, "ENGINE", tmp_path / "none.so")
        with pytest.raises(fl.RunError, match=r"none\.so: the engine that a kernel loads is missing"):
            fl.run(experiment, LINUX)
    (tmp_path / "sources" / "kernel" / "firstlight.patch").write_text("changed")
    with pytest.raises(fl.RunError, match="other sources"):
        fl.run(experiment, LINUX)


def test_memory_is_what_flows_can_fill() -> None:
    """Memory is a base, a part for each host, and for each flow its sockets and its bytes in flight, no more
    than it sends; or what the experiment gives."""
    plan: dict[str, Any] = {"hosts": [{}] * 100, "programs": [{}], "flows": [], "probes": [], "memory": None}
    small, endless, long = ({"size": size} for size in (20_000, None, 10**9))
    assert guest.memory_mb(plan) == 1024 + 100 + 128
    assert guest.memory_mb({**plan, "flows": [small] * 10_000}) == 1252 + 2700
    assert guest.memory_mb({**plan, "flows": [endless, long]}) == math.ceil(1252 + 8.5)
    assert guest.memory_mb({**plan, "probes": [{}] * 8}) == 1252 + 2
    assert guest.memory_mb({**plan, "memory": 2 * 10**9}) == 1908


def test_lack_of_room_is_an_error_before_the_run(experiment: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guest, "memory_mb", lambda plan: 1 << 40)
    with pytest.raises(fl.RunError, match=r"no room for a kernel: \d+ MB are needed in /dev/shm"):
        fl.run(experiment, LINUX)


def test_a_full_disk_leaves_no_half_result(experiment: Path, tmp_path: Path) -> None:
    """A limit on the size of files stands in for a disk that is full."""
    code = (
        "import resource, sys, firstlight as fl\n"
        "from firstlight.linux import installed\n"
        f"installed.ENGINE = installed.GUEST = installed.Path({str(experiment)!r})\n"
        "def full(fraction):\n"
        "    resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))\n"
        "try:\n"
        f"    fl.run({str(experiment)!r}, {LINUX!r}, out='r', progress=full)\n"
        "except fl.ResultError as e:\n"
        "    sys.exit(f'{e}')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert "r: cannot be written: File too large" in done.stderr
    assert "Traceback" not in done.stderr
    assert not [p for p in tmp_path.iterdir() if p.name.startswith((".r", "r"))]


@pytest.mark.parametrize("ended", [signal.SIGINT, signal.SIGKILL])
def test_no_process_outlives_its_command(
    cache: Path, tmp_path: Path, ended: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "waits")
    run = subprocess.Popen(
        argv(["run", "waits.toml", "--hosts", "linux", "--out", "r"]),
        cwd=tmp_path,
        env=environment(),
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for_runs(tmp_path)
    run.send_signal(ended)
    _, errors = run.communicate(timeout=60)
    assert run.returncode == (130 if ended == signal.SIGINT else -signal.SIGKILL)
    assert "Traceback" not in errors
    if ended == signal.SIGKILL:
        clear(tmp_path)
    assert not [p for p in tmp_path.iterdir() if p.name.startswith("r")]


def test_kernels_of_a_killed_sweep_end(cache: Path, tmp_path: Path) -> None:
    write(tmp_path, "waits", "[sweep]\nseed = [1, 2]\n")
    sweep = subprocess.Popen(
        argv(["sweep", "waits.toml", "--hosts", "linux", "--out", "s", "--jobs", "2"]),
        cwd=tmp_path,
        env=environment(),
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for_runs(tmp_path, 2)
    sweep.send_signal(signal.SIGINT)
    _, errors = sweep.communicate(timeout=60)
    assert sweep.returncode == 130
    assert "Traceback" not in errors
    assert list((tmp_path / "s" / "points").iterdir()) == []
    clear(tmp_path)


def test_a_sweep_s_failing_point_is_named_with_its_logs(cache: Path, tmp_path: Path) -> None:
    file = write(tmp_path, "panics")
    with pytest.raises(fl.RunError, match=r"seed=3: the kernel ended .* its logs are in (\S+)\.failed"):
        fl.sweep(file, LINUX, {"seed": [3]}, out=tmp_path / "s")


def test_parallel_runs_have_a_processor_each(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(processes, "CLAIM", str(tmp_path)[-80:])
    allowed = sorted(os.sched_getaffinity(0))
    with processes.own_cpu() as first, processes.own_cpu() as second, processes.own_cpu() as third:
        assert {first, second, third} <= set(allowed)
        assert len({first, second}) == min(2, len(allowed))
    with processes.own_cpu() as again:
        assert again == first


def test_hosts_that_exchange_no_packets_do_not_stand_still(cache: Path, tmp_path: Path) -> None:
    """The progress that the engine reports stops, the kernel's own time does not."""
    assert fl.run(write(tmp_path, "silent"), LINUX, patience=0.5).digest == "00ff"


def test_a_standstill_is_too_little_progress_for_too_long() -> None:
    still = guest.Standstill(100, 10, now=0)
    assert not still.lasts(0, 9)
    assert not still.lasts(100, 10)
    assert not still.lasts(199, 19)
    assert still.lasts(199, 21)
    assert not still.lasts(200, 22)
    assert guest.Standstill(100, 10, now=0).lasts(99, 11)


def test_a_version_chooses_the_kernel(experiment: Path) -> None:
    assert fl.run(experiment, {**LINUX, "linux.version": "7.2"}).manifest["kernel"]["version"] == "7.2"
    with pytest.raises(fl.KernelError, match=r"a tick of 4 ms and version 6\.12 is built: run"):
        fl.run(experiment, {**LINUX, "linux.version": "6.12"})


def test_ticks_choose_the_kernel() -> None:
    ticks = {"1ms": 1000, "4ms": 250, "10ms": 100, "4000us": 250}
    for tick, hz in ticks.items():
        assert installed.hz_of({"tcp": {"tick": tick}}) == hz
    assert installed.hz_of({}) == 250


def wait_for_runs(folder: Path, count: int = 1) -> None:
    """Wait until this number of stand-ins wait."""
    deadline = time.monotonic() + 60
    while sum((p / "waits").exists() for p in run_directories(folder)) < count:
        assert time.monotonic() < deadline, "waited a minute in vain"
        time.sleep(0.02)


def clear(folder: Path) -> None:
    """After a supervisor was killed: its kernels are gone at once, the next run removes their directories.
    What a stand-in had started has to be ended here; a real kernel's processes go with it."""
    deadline = time.monotonic() + 5
    while any("FIRSTLIGHT_RUN" in words for words in processes_of(folder).values()):
        assert time.monotonic() < deadline, "a kernel outlives its supervisor"
        time.sleep(0.02)
    for pid in processes_of(folder):
        os.kill(pid, signal.SIGKILL)
    for path in run_directories(folder):
        os.utime(path, (0, 0))
    directory.clear_leftovers(directory.place(1))
