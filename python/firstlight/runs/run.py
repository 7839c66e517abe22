"""One experiment from Python: look at it, run it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from firstlight import core
from firstlight.core import Overrides, Spec
from firstlight.errors import ResultError
from firstlight.runs.result import CAPTURE, Result, Staging, check_target, load


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
    is stored there, whole or not at all; ``capture`` adds a packet capture and needs ``out``. ``progress`` is
    called with the fraction done. On Linux hosts a run is ended when virtual time stands still for
    ``patience`` seconds; the logs of one that failed are kept as ``<out>.failed``, without ``out`` where the
    error says. Raises :class:`SpecError` for a wrong experiment; Ctrl-C raises ``KeyboardInterrupt`` and
    leaves nothing.
    """
    spec = Spec.read(path, overrides)
    if out is None:
        if capture:
            raise ResultError("a packet capture needs a place: give `out`")
        known = asked(spec)
        output = core.execute(spec, progress, patience=patience)
        return Result({**output.manifest, **known}, output.tables, programs=output.programs)
    target = Path(out)
    check_target(target)
    store(spec, target, capture, progress, patience)
    return load(target)


def store(
    spec: Spec,
    target: Path,
    capture: bool,
    progress: Callable[[float], None] | None = None,
    patience: float = core.PATIENCE,
) -> None:
    """Run ``spec`` and store its result as ``target``, whole or not at all."""
    with Staging(target) as staging:
        known = asked(spec)
        wanted = capture or core.wants_capture(spec)
        output = core.execute(
            spec,
            progress,
            staging.path / CAPTURE if wanted else None,
            patience=patience,
            logs=target.with_name(f"{target.name}.failed"),
        )
        staging.commit(Result({**output.manifest, **known}, output.tables, programs=output.programs))


def asked(spec: Spec) -> dict[str, Any]:
    """What a manifest says of what was asked for, before the run: its key, its overrides, and the files that
    it names."""
    return {"key": spec.key(), "overrides": spec.overrides, "inputs": spec.inputs()}
