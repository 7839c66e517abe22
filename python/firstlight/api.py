"""One experiment from Python: look at it, run it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from firstlight import core
from firstlight.core import Overrides, Spec
from firstlight.errors import ResultError
from firstlight.result import CAPTURE, Result, Staging, check_target, load


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
) -> Result:
    """Run the experiment in ``path`` and return its result.

    ``overrides`` replaces keys of the file (``{"voq.large": 50, "duration": "2s"}``). With ``out`` the result
    is stored there, whole or not at all; ``capture`` adds a packet capture and needs ``out``. ``progress`` is
    called with the fraction done. Raises :class:`SpecError` for a wrong experiment; Ctrl-C raises
    ``KeyboardInterrupt`` and leaves nothing.
    """
    spec = Spec.read(path, overrides)
    if out is None:
        if capture:
            raise ResultError("a packet capture needs a place: give `out`")
        output = core.execute(spec, progress)
        return Result(described(output.manifest, spec), output.tables)
    target = Path(out)
    check_target(target)
    with Staging(target) as staging:
        wanted = capture or core.wants_capture(spec)
        output = core.execute(spec, progress, staging.path / CAPTURE if wanted else None)
        Result(described(output.manifest, spec), output.tables).write(staging.path)
        staging.commit()
    return load(target)


def described(manifest: dict[str, Any], spec: Spec) -> dict[str, Any]:
    """The core's manifest with what only the caller knows: the run's key and its overrides."""
    return {**manifest, "key": spec.key(), "overrides": spec.overrides}
