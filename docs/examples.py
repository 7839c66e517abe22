"""The examples in the documents: their files, their commands, their Python, and what these print.

On a page, in order:

- ``<!-- file: NAME -->`` before a block: the block is a file; ``<!-- more of: NAME -->``: it is added to one;
- a ``console`` block: lines after ``$`` are commands, and the lines below each are what it prints,
  unless there is none;
- a ``python`` block: the lines run, in one program for each page; a ``text`` block after it is what they
  print;
- ``<!-- not run: REASON -->`` before a block: neither run nor compared.

In what is printed, a line ``...`` stands for any lines.
"""

import contextlib
import io
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
BLOCK = re.compile(
    r"(?P<notes>(?:^<!-- (?:file|more of|not run): [^\n]* -->\n)*)"
    r"^```(?P<kind>\w+)\n(?P<code>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
NOTE = re.compile(r"<!-- (file|more of|not run): (.*) -->")


def pages() -> list[Path]:
    """Every page that has examples, or may have some."""
    patterns = ("README.md", "docs/**/*.md", "experiments/**/*.md", "*/README.md", "linux/*/README.md")
    return sorted({page for pattern in patterns for page in ROOT.glob(pattern)})


@dataclass(frozen=True)
class Example:
    """One block of a page."""

    kind: str
    """``toml``, ``console``, ``python``, ``text``, …"""
    code: str
    notes: dict[str, str]
    start: int
    end: int
    """Where its code is in the page."""

    @property
    def not_run(self) -> str | None:
        """Why it is not run; ``None`` for others."""
        return self.notes.get("not run")

    @property
    def runs(self) -> bool:
        """Whether it has commands or Python lines that are run."""
        return self.kind in ("console", "python") and self.not_run is None


def examples(text: str) -> list[Example]:
    """The blocks of a page."""
    return [
        Example(match["kind"], match["code"], dict(NOTE.findall(match["notes"])), *match.span("code"))
        for match in BLOCK.finditer(text)
    ]


@dataclass
class Session:
    """The folder in which a page's examples run, and the names of its Python lines."""

    folder: Path
    names: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("experiments", "benches", "docs", "hadoop"):
            (self.folder / name).symlink_to(ROOT / name)

    def shell(self, command: str) -> str:
        """The output of a command; raises an error when it fails."""
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self.folder,
            env={**os.environ, "PATH": path, "COLUMNS": "112", "NO_COLOR": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(
                f"{command}\nends with exit code {done.returncode}:\n{done.stdout}{done.stderr}"
            )
        return done.stdout

    def python(self, code: str) -> str:
        """The output of Python lines."""
        with contextlib.chdir(self.folder), contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(code, self.names)
        return printed.getvalue()


def refreshed(text: str, folder: Path, say: Callable[[str], None] = lambda _: None) -> str:
    """A page with what its examples print when they run in the empty ``folder``."""
    session, printed, pieces, at = Session(folder), None, [], 0
    for one in examples(text):
        new = one.code
        if one.not_run is None:
            say(one.code)
            for note, mode in (("file", "w"), ("more of", "a")):
                if name := one.notes.get(note):
                    with (folder / name).open(mode) as file:
                        file.write(one.code)
            if one.kind == "console":
                new = _console(one.code, session)
            elif one.kind == "text" and printed is not None:
                new = _kept(one.code, printed)
        printed = session.python(one.code) if one.kind == "python" and one.not_run is None else None
        pieces += [text[at : one.start], new]
        at = one.end
    return "".join([*pieces, text[at:]])


def _console(code: str, session: Session) -> str:
    """A ``console`` block with what its commands print."""
    new = ""
    for command, shown in re.findall(r"^(\$ (?:.*\\\n)*.*\n)((?:(?!\$ ).*\n)*)", code, re.MULTILINE):
        new += command + _kept(shown, session.shell(command[2:].strip()), silent=True)
    return new


def _kept(shown: str, printed: str, *, silent: bool = False) -> str:
    """What a page shows, if that is what was printed; ``silent`` commands may show nothing."""
    if silent and not shown:
        return shown
    wanted = "".join(
        r"(?:.*\n)*" if line.strip() == "..." else re.escape(line.rstrip()) + r" *\n"
        for line in shown.splitlines()
    )
    printed = "".join(f"{line.rstrip()}\n" for line in printed.splitlines())
    return shown if re.fullmatch(wanted, printed) else printed
