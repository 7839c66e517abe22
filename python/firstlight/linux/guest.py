"""One run on Linux hosts: starts, watches and ends a kernel in virtual time.

The kernel is an ordinary process. It loads the engine and runs the guest program as its first process. It
leaves ``outcome.json`` in the run's directory, or ``failure.json``, or only its console output.
"""

import contextlib
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from firstlight import core
from firstlight.errors import RunError
from firstlight.linux import installed, launch, modules, outcome, own_code
from firstlight.linux.directory import CONSOLE, MODULES, RunDirectory, forget_logs
from firstlight.linux.processes import end, own_cpu

if TYPE_CHECKING:
    from firstlight.linux.kernels import Kernel

EPOCH_NS = 1_700_000_000_000_000_000
"""Time of the hosts' clocks at boot, the same in every run."""
HERE = "/proc/self/cwd"
"""The run's directory to its kernel, which runs there: programs see the kernel's command line, and the
directory is another one in each run."""
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
PROGRAM_MB = 128
FLOW_MB = 0.25
BUFFERS_MB = 4.0
"""Memory of a program, of a flow, and of a flow's full buffers at most."""
POLL_S = 0.05
EXIT_S = 20.0
"""How long a kernel may take to halt when its outcome is there."""
ANSWER_S = 2.0
"""How long a kernel may take to list the programs that it runs."""


def execute(
    experiment: core.Experiment,
    progress: Callable[[float], None] | None = None,
    capture: str | Path | None = None,
    *,
    patience: float = core.PATIENCE,
    logs: Path | None = None,
    trace: core.Timeline | None = None,
) -> core.Output:
    """Run ``experiment`` in a kernel.

    ``patience`` is how many seconds virtual time may stand still before the run is ended. The logs of a
    failed run are kept as ``logs``, else in a new temporary directory; the error names it. Nothing that was
    started is left, whatever ends this.
    """
    resolved = experiment.resolved
    kernel = installed.kernel_of(experiment)
    own = modules.of(own_code.modules(experiment), kernel)
    plan = json.loads(experiment.linux_plan())
    memory = memory_mb(plan)
    with RunDirectory(memory // 2) as run, own_cpu() as cpu, written(trace) as timeline:
        give_modules(run, plan, kernel, own)
        make_writable(plan)
        prepare(run, experiment, json.dumps(plan), capture, timeline)
        words = [str(kernel.binary), *arguments(run, kernel, plan, resolved["seed"], memory)]
        with logs_kept(run, logs):
            with started(run, words, cpu) as process:
                watch(process, run, plan, progress, patience)
            return outcome.read(run, outcome.described(kernel))


@contextlib.contextmanager
def written(trace: core.Timeline | None) -> Iterator[core.Timeline | None]:
    """The timeline that the engine is to write, in a folder of its own; it gets its place when complete.
    The folder is gone on exit: the engine may be killed."""
    if trace is None:
        yield None
        return
    path = Path(trace.path)
    with contextlib.ExitStack() as stack:
        try:
            folder = tempfile.TemporaryDirectory(prefix=".timeline-", dir=path.absolute().parent)
            timeline = replace(trace, path=Path(stack.enter_context(folder), "trace.pftrace"))
        except OSError as e:
            raise unwritable(path, e) from None
        yield timeline
        try:
            Path(timeline.path).replace(path)
        except OSError as e:
            raise unwritable(path, e) from None


def unwritable(path: Path, error: OSError) -> RunError:
    """A timeline that cannot be written."""
    return RunError(f"cannot write the timeline {core.named(path)}: {error.strerror}")


@contextlib.contextmanager
def logs_kept(run: RunDirectory, logs: Path | None) -> Iterator[None]:
    """Keep the logs of a run that fails, as ``logs`` if given; forget older ones where it does not fail."""
    try:
        yield
    except RunError as e:
        raise RunError(f"{e}; {run.keep(logs)}") from None
    if logs is not None:
        forget_logs(logs)


def memory_mb(plan: dict[str, Any]) -> int:
    """The kernel's memory, of which it takes what it uses: what the experiment says, else what should do. A
    program may be a Java virtual machine.

    Measured (7.2, MTU of 576 and 1500 B): a host takes 0.2 MB, a flow 0.08 MB for its sockets and threads,
    and one with full buffers 2.2 MB more. The bytes of flows are nowhere: what buffers hold of them are the
    records of packets, which are smaller than the packets."""
    if plan["memory"] is not None:
        return math.ceil(int(plan["memory"]) / 2**20)
    flows = sum(FLOW_MB + min((flow["size"] or math.inf) / 1e6, BUFFERS_MB) for flow in plan["flows"])
    flows += FLOW_MB * len(plan["probes"])
    return math.ceil(1024 + len(plan["hosts"]) + flows + PROGRAM_MB * len(plan["programs"]))


def give_modules(run: RunDirectory, plan: dict[str, Any], kernel: "Kernel", own: list[Path]) -> None:
    """Copy the plan's modules to the run's directory, then the user's ``own``, which the plan names last."""
    folder = run.path / MODULES
    folder.mkdir()
    for file in (kernel.modules / name for name in plan["modules"]):
        if file.is_file():  # else the kernel says which one it lacks
            shutil.copy(file, folder)
    plan["modules"] += [Path(shutil.copy(file, folder)).name for file in own]


def make_writable(plan: dict[str, Any]) -> None:
    """Make the directories of the machine that the plan's programs write to."""
    for directory in map(Path, plan["writable"]):
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as e:
            raise RunError(f"{directory}, of linux.writable: cannot be made: {e.strerror}") from None


def prepare(
    run: RunDirectory,
    experiment: core.Experiment,
    plan: str,
    capture: str | Path | None,
    timeline: core.Timeline | None = None,
) -> None:
    """Write the files that the engine and the guest program read."""
    spec = experiment.spec
    run.write("experiment.toml", spec.text)
    run.link("experiment", Path(spec.path).absolute().parent)
    run.write("plan.json", plan)
    described = {
        "version": core.version(),
        "path": str(Path(spec.path).absolute()),  # the engine runs elsewhere, workloads' files are beside it
        "overrides": spec.overrides,
        "sweep": spec.sweep,
        "capture": None if capture is None else str(Path(capture).absolute()),
        "timeline": {} if timeline is None else timeline.asked(),
        "seed": experiment.resolved["seed"],
    }
    run.write("run.json", json.dumps(described))


def arguments(run: RunDirectory, kernel: "Kernel", plan: dict[str, Any], seed: int, memory: int) -> list[str]:
    """The kernel's command line; what it names is put into the run's directory."""
    run.link("engine.so", installed.engine())
    run.link("guest", installed.guest())
    words = [
        f"mem={memory}M",
        "root=/dev/root",
        "rootfstype=hostfs",
        "rootflags=/",
        "ro",
        f"init={HERE}/guest",
        "con=null",
        f"uml_dir={HERE}/uml/",  # else it would leave a directory .uml in the machine's root
        *(["seccomp=on"] if kernel.seccomp else []),
        "time-travel=inf-cpu",
        f"time-travel-start={EPOCH_NS}",
        f"firstlight={HERE}/engine.so,{HERE}",
        f"firstlight_seed={seed}",
        f"FIRSTLIGHT_RUN={HERE}",
        *([] if plan["ipv6"] else ["ipv6.disable=1"]),
        "loglevel=4",
        "panic=1",
        *(f"{p['module']}.{p['name']}={p['value']}" for p in own_parameters(plan)),
    ]
    return words


def own_parameters(plan: dict[str, Any]) -> list[dict[str, str]]:
    """Module parameters on the kernel's command line: those of code that is built into it. A module gets its
    parameters when it is loaded."""
    return [p for p in plan["parameters"] if f"{p['module']}.ko" not in plan["modules"]]


@contextlib.contextmanager
def started(run: RunDirectory, words: list[str], cpu: int) -> "Iterator[subprocess.Popen[bytes]]":
    """The kernel's process, in a session of its own; it and all its children are gone on exit."""
    process = spawned(run, words, cpu, {"HOME": "/", "TMPDIR": str(run.path.parent)})
    try:
        yield process
    finally:
        end(process)


def spawned(
    run: RunDirectory, words: list[str], cpu: int, environment: dict[str, str]
) -> "subprocess.Popen[bytes]":
    """A process that ends with this one, in a session of its own, on one processor unless ``cpu`` is -1. What
    it prints goes to a file of the run."""
    command = [sys.executable, "-I", "-S", launch.__file__, str(os.getpid()), str(cpu), *words]
    with (run.path / CONSOLE).open("wb") as console:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=console,
            stderr=subprocess.STDOUT,
            cwd=run.path,
            env={"PATH": PATH, "LC_ALL": "C.UTF-8", **environment},
            start_new_session=True,
        )


def watch(
    process: "subprocess.Popen[bytes]",
    run: RunDirectory,
    plan: dict[str, Any],
    progress: Callable[[float], None] | None,
    patience: float,
) -> None:
    """Wait for the kernel's end; raise :class:`RunError` when it ended early or stands still, or when a
    program wrote too much."""
    duration_ns = plan["duration"]
    still = Standstill(duration_ns / 1000, patience, time.monotonic())
    finished: float | None = None
    while process.poll() is None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(POLL_S)
        run.check_outputs(plan)
        now, virtual = time.monotonic(), run.virtual_ns()
        if (run.path / "outcome.json").exists() or (run.path / "failure.json").exists():
            finished = finished or now
            if now - finished > EXIT_S:
                break  # the outcome is complete; the kernel only fails to halt
        elif still.lasts(virtual or 0, now):
            runs = what_runs(process, run)
            if virtual is None or not runs or still.lasts(int(runs[1]), now):
                raise RunError(standstill(runs, virtual, duration_ns, patience))
        if progress:
            progress(min((virtual or 0) / duration_ns, 1.0))
    found = run.json("failure.json")
    failure = str(found.get("error", found)) if found else ""
    if killed := run.killed():
        full = memory_is_full(killed, run, plan)
        raise RunError(f"{full}; {failure}" if failure else full)
    if failure:
        raise RunError(failure)
    if not (run.path / "outcome.json").exists():
        raise RunError(early_end(process, run, duration_ns))
    run.check_outputs(plan)


class Standstill:
    """Notices when virtual time has moved by less than ``step_ns`` for ``patience`` seconds."""

    def __init__(self, step_ns: float, patience: float, now: float) -> None:
        self._step = step_ns
        self._patience = patience
        self._mark = 0
        self._since = now

    def lasts(self, virtual_ns: int, now: float) -> bool:
        """Whether the standstill has lasted too long by now."""
        if virtual_ns - self._mark >= self._step:
            self._mark, self._since = virtual_ns, now
        return now - self._since > self._patience


RUNNING = re.compile(r"firstlight: at (\d+) ns the processor runs '(.*)' \(pid (\d+)\)")


def what_runs(process: "subprocess.Popen[bytes]", run: RunDirectory) -> "re.Match[str] | None":
    """The kernel's answer to a question for its time and its running programs. Hosts that exchange no packets
    report no progress."""
    said = len(run.console())
    with contextlib.suppress(ProcessLookupError):
        os.kill(process.pid, signal.SIGUSR2)
    found, deadline = None, time.monotonic() + ANSWER_S
    while not found and time.monotonic() < deadline:
        time.sleep(POLL_S)
        found = RUNNING.search(run.console()[said:])
    return found


def standstill(
    found: "re.Match[str] | None", virtual_ns: int | None, duration_ns: int, patience: float
) -> str:
    """Why virtual time stands still, as far as the kernel reports it."""
    if virtual_ns is None:
        where, why = f"the hosts were not set up within {patience:g} s", "it hangs"
    else:
        at = f"{virtual_ns / 1e9:.6g} s of {duration_ns / 1e9:.6g} s"
        where = f"virtual time stood still for {patience:g} s, at {at}"
        why = "a program that computes or polls without a pause stops it"
    if not found:
        return f"{where}; the kernel does not say what it runs"
    name, pid = found[2], found[3]
    if name.startswith("swapper"):
        return f"{where}; no program runs: the kernel waits for something outside"
    return f"{where}; the processor runs '{name}' (pid {pid}): {why} (a longer wait: --patience)"


KILLED_CODE = 137
"""The exit code of a program that was ended so, or of a shell whose last command was."""
LESS = "give them more (linux.memory), or let programs use less of it and write less into files"


def memory_is_full(process: str, run: RunDirectory, plan: dict[str, Any]) -> str:
    """Why a run in which the kernel ended ``process`` has no result, although it may have gone on: without a
    server or a program's child. Programs that ended so are named, else those whose command names it."""
    tables = (run.json("outcome.json") or {"tables": []})["tables"]
    ended = [outcome.columns(table)["exit_code"] for table in tables if table["name"] == "programs"]
    programs = plan["programs"]
    of = (
        [p["name"] for p, code in zip(programs, *ended, strict=False) if code == KILLED_CODE] if ended else []
    )
    of = of or [p["name"] for p in programs if process in p["command"]]
    whose = f" of program {' or '.join(of)}" if of else ""
    return f"the hosts' memory is full, so that the kernel ended '{process}'{whose}: {LESS}"


FULL = re.compile(r"Out of memory|invoked oom-killer|deadlocked on memory|oom-kill:")
"""The line on a kernel's console when its memory is full."""


def early_end(process: "subprocess.Popen[bytes]", run: RunDirectory, duration_ns: int) -> str:
    """Why the kernel ended without an outcome, by its console output."""
    code = process.returncode
    how = f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
    lines = [line.strip() for line in run.console().splitlines() if line.strip()]
    ours = [line for line in lines if re.match(r"(\[ *[\d.]+\] *)?firstlight: ", line)]
    panics = [line for line in lines if "Kernel panic" in line]
    said = [re.sub(r"^\[ *[\d.]+\] *", "", line) for line in (panics or ours[-1:] or lines[-1:])[:1]]
    at = run.virtual_ns()
    when = "before the hosts were set up"
    if at is not None:
        when = f"at {at / 1e9:.6g} s of {duration_ns / 1e9:.6g} s"
    if any(FULL.search(line) for line in lines):
        said = [f"the hosts' memory is full: {LESS}"]
    elif code == 0:  # nothing else ends a kernel well before its run is over
        said = ["a program switched the hosts off: leave out what calls poweroff, halt or reboot"]
    if code == -signal.SIGBUS:
        said = [f"no memory left on {run.path.parent}"]
    return f"the kernel ended {how} {when}" + (f": {said[0]}" if said else ", and printed nothing")
