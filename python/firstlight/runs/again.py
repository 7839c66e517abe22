"""The experiment of a result, run once more: without a cause, or to see why its flows were slow.

A run is deterministic, so that a second one shows what the first one did not record.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from firstlight.core import Spec
from firstlight.errors import ResultError
from firstlight.linux.installed import has_linux_hosts, is_dilated
from firstlight.runs.result import Result
from firstlight.runs.run import asked, execute

MOST_HOPS = 10_000_000
"""Packet-hops that are repeated without being asked for: some seconds, and less than a gigabyte."""
HOPS_OF_KERNEL = 10
"""A packet-hop between kernels counts as so many."""


def run_again(result: Result, resolved: dict[str, Any]) -> Result:
    """Run an experiment that was made of ``result``'s, with the same seed; raises :class:`ResultError` where
    the files that it names have changed, or its controllers were classes of the caller."""
    if classes := result.manifest.get("congestion_control"):
        names = ", ".join(f'"{name}"' for name in classes)
        raise ResultError(
            f"the run's congestion control {names} is a class of the Python program that made it, which "
            "is not stored; run the experiment again from there"
        )
    experiment = Spec(toml(resolved), str(_file_of(result))).check()
    if experiment.inputs != result.manifest.get("inputs", {}):
        names = ", ".join(experiment.inputs)
        raise ResultError(f"files that the experiment names have changed since the run: {names}")
    output = execute(experiment, None)
    return Result({**output.manifest, **asked(experiment)}, output.tables)


def _file_of(result: Result) -> Path:
    """Where the experiment's file was, beside the files that it names, from whatever directory it was run."""
    known = result.manifest.get("experiment", {})
    path = Path(known.get("path", "experiment.toml"))
    folder = Path(known.get("folder", ""))
    return folder / path.name if known.get("folder") and folder.is_dir() else path


def with_accounts(results: Sequence[Result]) -> list[Result]:
    """The results with the account of each complete flow, from a second run where the first one recorded
    none.

    Raises :class:`ResultError` where they cannot have one, or would take long."""
    hops = sum(_hops(result) for result in results if _lacks_account(result))
    if hops > MOST_HOPS:
        raise ResultError(
            f"a second run to record them would have {hops:,} packet-hops, and a report repeats {MOST_HOPS:,}"
        )
    return [_with_account(result) if _lacks_account(result) else result for result in results]


def _lacks_account(result: Result) -> bool:
    """Whether flows were complete, and nothing says why they took their time."""
    if "account" in result.tables or "flows" not in result.tables or "spec" not in result.manifest:
        return False
    return bool(result.flows["fct_us"].notna().any())


def _hops(result: Result) -> int:
    hops = int(result.manifest.get("counts", {}).get("packet_hops", 0))
    return hops * HOPS_OF_KERNEL if has_linux_hosts(result.manifest["spec"]) else hops


def _with_account(result: Result) -> Result:
    spec = result.manifest["spec"]
    if is_dilated(spec):
        raise ResultError("dilated hosts have no accounts")
    if spec.get("program"):
        raise ResultError("the experiment has programs, which a report does not start")
    again = run_again(result, {**spec, "measure": {**spec["measure"], "account": True, "account_events": 0}})
    if again.digest != result.digest:
        raise ResultError(f"a second run is another one: digest {again.digest} instead of {result.digest}")
    return again


def toml(tables: dict[str, Any]) -> str:
    """A resolved experiment as TOML, each of its tables on one line."""
    return "".join(f"{json.dumps(key)} = {_value(value)}\n" for key, value in tables.items())


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {_value(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_value(inner) for inner in value) + "]"
    return json.dumps(value)
