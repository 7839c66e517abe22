"""Tables that programs on Linux hosts leave.

A file ``NAME.csv`` in a program's working directory adds rows to the table ``NAME`` of the result. The table
has the rows of all programs, with a column ``program`` before the others. The first line of the file names
the columns. A column whose name ends in ``_us`` is time by the host's clock; it is divided by ``time_scale``
like all times of a result.
"""

import re
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from firstlight.errors import RunError

if TYPE_CHECKING:
    import pandas as pd


def tables(folder: Path, taken: Collection[str], time_scale: int) -> dict[str, dict[str, Any]]:
    """The tables that the programs of ``folder`` left, by name; names of ``taken`` raise ``RunError``."""
    import pandas as pd

    found: dict[str, pd.DataFrame] = {}
    for file in sorted(folder.glob("*/*.csv")):
        what, name = f"program {file.parent.name}, {file.name}", file.stem
        if name in taken or not re.fullmatch(r"[a-z][a-z0-9_]*", name):
            raise RunError(
                f"{what}: '{name}' {'is a table of every result' if name in taken else 'names no table'}; "
                "use another name, of lower-case letters, digits and '_'"
            )
        rows = _read(file, what)
        if name in found and list(found[name]) != list(rows):
            raise RunError(f"{what}: its columns are not those of other programs' {file.name}; use the same")
        found[name] = pd.concat([found[name], rows], ignore_index=True) if name in found else rows
    return {name: _columns(rows, time_scale) for name, rows in found.items()}


def _read(file: Path, what: str) -> "pd.DataFrame":
    """The rows of one file, with a column of its program before them."""
    from pyarrow import csv

    alone = csv.ReadOptions(use_threads=False)
    try:
        rows: pd.DataFrame = csv.read_csv(file, read_options=alone).to_pandas(use_threads=False)
        rows.insert(0, "program", file.parent.name)
    except (ValueError, OSError) as e:
        raise RunError(f"{what}: is not CSV with a line of names and rows below it: {e}") from None
    return rows


def _columns(rows: "pd.DataFrame", time_scale: int) -> dict[str, Any]:
    """The values of each column, times divided by ``time_scale``."""
    scale = {name: time_scale if str(name).endswith("_us") else 1 for name in rows}
    return {
        str(name): rows[name].to_numpy() / scale[name] if scale[name] > 1 else rows[name].to_numpy()
        for name in rows
    }
