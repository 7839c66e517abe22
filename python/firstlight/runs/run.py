"""One experiment: inspect it, run it, store its result."""

import contextlib
import dataclasses
import functools
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, get_args

from firstlight import core
from firstlight.congestion import source_hash
from firstlight.core import Experiment, Overrides, Spec, Timeline
from firstlight.dilated import run as dilated
from firstlight.errors import PlanError, ResultError, RunError
from firstlight.linux import guest, installed
from firstlight.runs import leftovers
from firstlight.runs.result import CAPTURE, EARLIER, Result, is_sound, load
from firstlight.runs.staging import Staging, check_target, commit_all, real

Hosts = Literal["simulated", "linux"]
"""The kinds of hosts: simulated, with our TCP, or Linux, with a kernel's."""
HOSTS: tuple[Hosts, ...] = get_args(Hosts)
DILATED = "dilated"
"""Linux hosts with this machine's kernel, in real time: for single runs and sweeps."""


def inspect(path: str | Path, overrides: Overrides | None = None) -> dict[str, Any]:
    """What the experiment in ``path`` would build: hosts, rates, week, bandwidth-delay products, flows.
    Nothing is run."""
    return Spec.read(path, overrides, sweep=True).check().inspect()


def run(
    path: str | Path,
    overrides: Overrides | None = None,
    *,
    out: str | Path | None = None,
    capture: bool = False,
    progress: Callable[[float], None] | None = None,
    patience: float = core.PATIENCE,
    congestion_control: Mapping[str, type] | None = None,
    trace: Timeline | str | Path | None = None,
) -> Result:
    """Run the experiment in ``path`` and return its result.

    ``overrides`` replaces keys of the file (``{"voq.large": 50, "duration": "2s"}``). With ``out`` the result
    is stored there, completely or not at all; ``capture`` adds a packet capture and needs ``out``. ``trace``
    names a file for the run's timeline, or a :class:`Timeline` of chosen flows and times.
    ``progress`` is called with the fraction done. On Linux hosts a run fails when virtual time stands still
    for ``patience`` seconds; the logs of a failed run are kept as ``<out>.failed``, without ``out`` where the
    error says. ``congestion_control`` has classes of one's own (:class:`CongestionControl`) by the names that
    keys such as ``tcp.cc`` have for them. Raises :class:`SpecError` for a wrong experiment; Ctrl-C raises
    ``KeyboardInterrupt`` and stores nothing.
    """
    spec = Spec.read(path, overrides, congestion_control=congestion_control)
    timeline = Timeline(trace) if isinstance(trace, str | Path) else trace
    if timeline is not None:
        timeline = dataclasses.replace(timeline, path=real(Path(timeline.path)))
    if out is None:
        if capture:
            raise ResultError("a packet capture needs a place: give `out`")
        experiment = spec.check()
        _check_trace(experiment, timeline)
        known = asked(experiment)
        output = execute(experiment, progress, patience=patience, trace=timeline)
        return Result({**output.manifest, **known}, output.tables, programs=output.programs)
    return run_into(Path(out), spec.check(), capture, progress, patience, timeline)


def run_into(
    target: Path,
    experiment: Experiment,
    capture: bool = False,
    progress: Callable[[float], None] | None = None,
    patience: float = core.PATIENCE,
    trace: Timeline | None = None,
    watched: core.Watched | None = None,
) -> Result:
    """Run ``experiment``, store its result as ``target``, completely or not at all, and return it."""
    target = real(target)
    check_target(target, EARLIER)
    if trace is not None and real(Path(trace.path)).is_relative_to(target):
        raise PlanError(f"--trace {core.named(trace.path)}: the result gets this place; name another file")
    leftovers.clear(target.parent)
    written, _ = computed(experiment, target, capture, progress, patience, trace=trace, watched=watched)
    commit_all([written])
    return load(target)


def store(
    experiment: Experiment,
    target: Path,
    capture: bool,
    progress: Callable[[float], None] | None = None,
    patience: float = core.PATIENCE,
    *,
    shared: bool = False,
) -> None:
    """Run ``experiment`` and store its result as ``target``, completely or not at all. On a ``shared`` target
    a sound result of another process stays."""
    written, _ = computed(experiment, target, capture, progress, patience, shared=shared)
    commit_all([written])


def computed(
    experiment: Experiment,
    target: Path,
    capture: bool,
    progress: Callable[[float], None] | None = None,
    patience: float = core.PATIENCE,
    *,
    shared: bool = False,
    trace: Timeline | None = None,
    watched: core.Watched | None = None,
) -> tuple[Staging, Result]:
    """Run ``experiment`` and write its result beside ``target``; :func:`commit_all` stores it there."""
    with contextlib.ExitStack() as stack:
        staging = stack.enter_context(Staging(target, keep=is_sound if shared else lambda _: False))
        _check_trace(experiment, trace)
        known = asked(experiment)
        wanted = capture or experiment.resolved.get("measure", {}).get("capture")
        try:
            output = execute(
                experiment,
                progress,
                staging.path / CAPTURE if wanted else None,
                patience=patience,
                logs=target.with_name(f"{target.name}.failed"),
                trace=trace,
                watched=watched,
            )
        except RunError as e:  # the name of the unfinished directory is none that the user gave
            raise RunError(str(e).replace(str(staging.path), str(target))) from None
        result = Result({**output.manifest, **known}, output.tables, programs=output.programs)
        staging.write(result)
        stack.pop_all()
    return staging, result


def _check_trace(experiment: Experiment, trace: Timeline | None) -> None:
    """Raise :class:`PlanError` when a timeline is asked for that the hosts do not give."""
    if trace is not None and installed.is_dilated(experiment.resolved):
        raise PlanError("hosts in dilated time have no timeline: take --trace out, or set hosts.kind")


def asked(experiment: Experiment) -> dict[str, Any]:
    """The manifest's entries that are known before the run: its key, its file's path and text, its overrides,
    and the files and the user's own classes that the experiment names."""
    spec = experiment.spec
    known = {
        "key": key(experiment),
        "experiment": {
            "path": spec.path,
            "folder": str(Path(spec.path).absolute().parent),
            "text": spec.text,
        },
        "overrides": spec.overrides,
        "inputs": experiment.inputs,
    }
    own = sources(experiment)
    return {**known, "congestion_control": own} if own else known


def sources(experiment: Experiment) -> dict[str, str]:
    """The user's own classes of congestion control, each with a hash of its source."""
    return {name: source_hash(mine) for name, mine in sorted(experiment.spec.congestion_control.items())}


def directory_of(out: str | Path | None, *default: str) -> Path:
    """The directory ``out``, else the default one in ``results``; raises :class:`ResultError` for a file."""
    directory = Path(out) if out is not None else Path("results", *default)
    if (there := real(directory)).exists() and not there.is_dir():
        raise ResultError(f"{directory}: is a file; name a directory")
    try:
        str(directory).encode()
    except UnicodeEncodeError:
        raise ResultError(f"{core.named(directory)}: its name is not UTF-8; name another directory") from None
    return directory


def key(experiment: Experiment) -> str:
    """Identity of a run, 32 hex digits; see :func:`key_of`."""
    return key_of(experiment.spec, surroundings(experiment))


Surroundings = list[Any]
"""The parts of a run's identity besides the experiment's text, the overrides and the core's build: the files
that it names, and on Linux hosts the kernel."""


def surroundings(experiment: Experiment) -> Surroundings:
    """Hashes of the files that ``experiment`` names, and on Linux hosts of the kernel."""
    resolved = experiment.resolved
    kernel = installed.identity(experiment) if installed.has_linux_hosts(resolved) else []
    return [experiment.inputs, *kernel, *sources(experiment).items()]


def key_of(spec: Spec, known: Surroundings) -> str:
    """Identity of a run, 32 hex digits: a hash of all that decides its result."""
    identity = [core.build(), _hash_of_text(spec.text), sorted(spec.overrides.items()), *known]
    return core.hash_of(json.dumps(identity, default=str).encode())


@functools.lru_cache(maxsize=8)
def _hash_of_text(text: str) -> str:
    """The hash of an experiment's text: the points of a large sweep have one text, which can be long."""
    return core.hash_of(text.encode(errors="surrogatepass"))


def execute(
    experiment: Experiment,
    progress: Callable[[float], None] | None = None,
    capture: str | Path | None = None,
    *,
    patience: float = core.PATIENCE,
    logs: Path | None = None,
    trace: Timeline | None = None,
    watched: core.Watched | None = None,
) -> core.Output:
    """Run ``experiment`` to its end, on the hosts that it asks for.

    ``progress`` gets the fraction done; on simulated hosts ``watched``, if there is one, is called in its
    place, with the transmissions begun so far too. Ctrl-C raises ``KeyboardInterrupt`` at once.

    On Linux hosts a run ends with an error when virtual time stands still for ``patience`` seconds. The logs
    of a failed run are kept as ``logs``, else in a temporary directory that the error names.
    """
    core.check_patience(patience)
    if installed.is_dilated(experiment.resolved):
        return dilated.execute(experiment, progress, capture, patience=patience, logs=logs)
    if installed.has_linux_hosts(experiment.resolved):
        return guest.execute(experiment, progress, capture, patience=patience, logs=logs, trace=trace)
    return core.simulate(experiment, progress, capture, trace, watched=watched)
