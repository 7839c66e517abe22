"""Writes files and directories completely or not at all."""

import os
import secrets
import shutil
from pathlib import Path
from typing import Protocol

from firstlight.errors import ResultError


def replace_text(file: Path, text: str) -> None:
    """Write a file completely or not at all."""
    part = file.with_name(f".{file.name}.part")
    part.write_text(text, encoding="utf-8")
    part.replace(file)


def check_target(target: Path, mark: str) -> None:
    """Raise :class:`ResultError` unless ``target`` is free, an empty directory, or an earlier result, which
    has a file ``mark``."""
    if target.is_dir() and ((target / mark).is_file() or not any(target.iterdir())):
        return
    if target.exists():
        raise ResultError(f"{target}: exists and is not a result; name a new directory")


class Stored(Protocol):
    """Something that is stored as a directory."""

    def write(self, directory: Path) -> None:
        """Write the files into an existing directory."""


class Staging:
    """A temporary directory beside ``target`` that :meth:`commit` renames to ``target``; without a commit it
    is removed."""

    def __init__(self, target: Path) -> None:
        self.target = target
        self.path = Path()

    def __enter__(self) -> "Staging":
        parent = self.target.absolute().parent
        # Named before it is made: an interruption in between leaves nothing, and `with` knows of none yet.
        self.path = parent / f".{self.target.name}.{os.getpid()}.{secrets.token_hex(4)}"
        try:
            parent.mkdir(parents=True, exist_ok=True)
            self.path.mkdir(0o755)
        except OSError as e:
            raise ResultError(f"{self.target}: cannot be written: {e.strerror}") from None
        except BaseException:
            self.__exit__()
            raise
        return self

    def commit(self, result: Stored) -> None:
        """Write ``result`` into the directory and rename it to ``target``; an earlier result there is
        removed. Raises :class:`ResultError` when there is no room."""
        try:
            result.write(self.path)
        except OSError as e:
            why = os.strerror(e.errno) if e.errno else e
            raise ResultError(f"{self.target}: cannot be written: {why}") from None
        if self.target.exists():
            old = self.path.with_name(self.path.name + ".old")
            self.target.rename(old)
            self.path.rename(self.target)
            shutil.rmtree(old, ignore_errors=True)
        else:
            self.path.rename(self.target)

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
