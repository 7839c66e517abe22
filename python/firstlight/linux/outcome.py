"""Reads the outcome of a kernel's run, in the form of the core's own output."""

from math import nan
from typing import Any

from firstlight.core import Output
from firstlight.errors import RunError
from firstlight.linux import rows
from firstlight.linux.directory import PROGRAMS, RunDirectory
from firstlight.linux.kernels import Kernel


def read(run: RunDirectory, kernel: dict[str, Any]) -> Output:
    """The manifest with the kernel, the tables, and the programs' outputs."""
    found = run.json("outcome.json")
    try:
        manifest = {**found["manifest"], "kernel": kernel}
        tables = {table["name"]: columns(table) for table in found["tables"]}
        time_scale = int(manifest["time_scale"])
    except (KeyError, TypeError, ValueError) as e:
        raise RunError(f"the engine's outcome.json is not as expected: {type(e).__name__}: {e}") from None
    if left := rows.tables(run.path / PROGRAMS, tables, time_scale):
        manifest["program_tables"] = sorted(left)
    return Output(manifest, tables | left, run.outputs())


def columns(table: dict[str, Any]) -> dict[str, Any]:
    """One table as columns; a number that was not measured is NaN."""
    return {c["name"]: column(c["type"], c["values"]) for c in table["columns"]}


def column(kind: str, values: list[Any]) -> Any:
    """One column by its type."""
    import numpy as np

    if kind == "number":
        return np.array([nan if v is None else v for v in values], dtype=np.float64)
    if kind == "integer":
        return np.array(values, dtype=np.int64)
    if kind == "flag":
        return np.array(values, dtype=np.bool_)
    if kind == "text":
        return [str(v) for v in values]
    raise ValueError(f"a column of type '{kind}'")


def described(kernel: Kernel) -> dict[str, Any]:
    """The kernel's entry in a manifest."""
    entries = {k: kernel.manifest.get(k) for k in ("version", "hz", "hash", "patch", "config", "source")}
    if "patches" in kernel.manifest:
        entries["patches"] = kernel.manifest["patches"]
    return {**entries, "mode": "seccomp" if kernel.seccomp else "ptrace"}
