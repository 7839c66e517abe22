"""Reads files that anybody may have put there."""

import json
import os
import stat
from pathlib import Path
from typing import Any

MOST = 1 << 30
"""Bytes of a file that is read: the index of a sweep of a million points has fewer."""


def content(file: Path) -> bytes:
    """The content of a file. Raises :class:`OSError` or :class:`ValueError` where it cannot be read; a pipe,
    a device, and a file of more than a gigabyte are not read."""
    found = os.stat(file)
    if not stat.S_ISREG(found.st_mode):
        raise ValueError("it is no file")
    if found.st_size > MOST:
        raise ValueError(f"it has {found.st_size / 1e9:.1f} GB")
    return file.read_bytes()


def read_json(file: Path) -> Any:
    """The content of a JSON file; also raises :class:`RecursionError`."""
    return json.loads(content(file))
