"""One experiment: inspect it, run it, store its result."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, get_args

from firstlight import core
from firstlight.core import Overrides, Spec
from firstlight.errors import ResultError, SpecError
from firstlight.linux import guest, installed
from firstlight.runs.result import CAPTURE, MANIFEST, Result, load
from firstlight.runs.staging import Staging, check_target

Hosts = Literal["simulated", "linux"]
"""The kinds of hosts: simulated, with our TCP, or Linux, with a kernel's."""
HOSTS: tuple[Hosts, ...] = get_args(Hosts)


def inspect(path: str | Path, overrides: Overrides | None = None) -> dict[str, Any]:
    """What the experiment in ``path`` would build: hosts, rates, week, bandwidth-delay products, flows.
    Nothing is run."""
    spec = Spec.read(path, overrides)
    return core.inspect(Spec(spec.text, spec.path, spec.overrides, "sweep" in spec.document()))


def run(
    path: str | Path,
    overrides: Overrides | None = None,
    *,
    out: str | Path | None = None,
    capture: bool = False,
    progress: Callable[[float], None] | None = None,
    patience: float = core.PATIENCE,
) -> Result:
    """Run the experiment in ``path`` and return its result.

    ``overrides`` replaces keys of the file (``{"voq.large": 50, "duration": "2s"}``). With ``out`` the result
    is stored there, completely or not at all; ``capture`` adds a packet capture and needs ``out``.
    ``progress`` is called with the fraction done. On Linux hosts a run fails when virtual time stands still
    for ``patience`` seconds; the logs of a failed run are kept as ``<out>.failed``, without ``out`` where the
    error says. Raises :class:`SpecError` for a wrong experiment; Ctrl-C raises ``KeyboardInterrupt`` and
    stores nothing.
    """
    spec = Spec.read(path, overrides)
    if out is None:
        if capture:
            raise ResultError("a packet capture needs a place: give `out`")
        known = asked(spec)
        output = execute(spec, progress, patience=patience)
        return Result({**output.manifest, **known}, output.tables, programs=output.programs)
    target = Path(out)
    check_target(target, MANIFEST)
    store(spec, target, capture, progress, patience)
    return load(target)


def store(
    spec: Spec,
    target: Path,
    capture: bool,
    progress: Callable[[float], None] | None = None,
    patience: float = core.PATIENCE,
) -> None:
    """Run ``spec`` and store its result as ``target``, completely or not at all."""
    with Staging(target) as staging:
        known = asked(spec)
        wanted = capture or _wants_capture(spec)
        output = execute(
            spec,
            progress,
            staging.path / CAPTURE if wanted else None,
            patience=patience,
            logs=target.with_name(f"{target.name}.failed"),
        )
        staging.commit(Result({**output.manifest, **known}, output.tables, programs=output.programs))


def asked(spec: Spec) -> dict[str, Any]:
    """The manifest's entries that are known before the run: its key, its overrides, and the files that the
    experiment names."""
    return {"key": key(spec), "overrides": spec.overrides, "inputs": spec.inputs()}


def name_of(spec: Spec) -> str:
    """The experiment's name, else its file's."""
    return str(spec.document().get("name") or Path(spec.path).stem)


def directory_of(out: str | Path | None, *default: str) -> Path:
    """The directory ``out``, else the default one in ``results``; raises :class:`ResultError` for a file."""
    directory = Path(out) if out is not None else Path("results", *default)
    if directory.is_file():
        raise ResultError(f"{directory}: is a file; name a directory")
    return directory


def key(spec: Spec) -> str:
    """Identity of a run, 32 hex digits: a hash of the experiment's text, the overrides, the files that it
    names and the core's build; on Linux hosts also of the kernel."""
    identity = [core.build(), spec.text, sorted(spec.overrides.items()), spec.inputs(), *_kernel_of(spec)]
    return core.hash_of(json.dumps(identity, default=str).encode())


def _kernel_of(spec: Spec) -> list[str]:
    """Identity of the kernel; empty for simulated hosts and for wrong experiments."""
    try:
        resolved = core.inspect(spec)["spec"]
    except SpecError:
        return []
    return installed.identity(resolved) if installed.has_linux_hosts(resolved) else []


def _wants_capture(spec: Spec) -> bool:
    """Whether the experiment itself asks for a packet capture (``measure.capture``)."""
    return bool(core.inspect(spec)["spec"].get("measure", {}).get("capture"))


def execute(
    spec: Spec,
    progress: Callable[[float], None] | None = None,
    capture: str | Path | None = None,
    *,
    patience: float = core.PATIENCE,
    logs: Path | None = None,
) -> core.Output:
    """Run ``spec`` to its end, on the hosts that it asks for. ``progress`` gets the fraction done; Ctrl-C
    raises ``KeyboardInterrupt`` at once.

    On Linux hosts a run ends with an error when virtual time stands still for ``patience`` seconds. The logs
    of a failed run are kept as ``logs``, else in a temporary directory that the error names.
    """
    resolved = core.inspect(spec)["spec"]
    if installed.has_linux_hosts(resolved):
        return guest.execute(spec, resolved, progress, capture, patience=patience, logs=logs)
    return core.simulate(spec, progress, capture)
