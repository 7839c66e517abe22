"""Calls the Rust core: an experiment's text and overrides in, manifest and tables out."""

import functools
import hashlib
import json
import os
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from firstlight import _core
from firstlight.errors import PlanError, RunError, SpecError

Overrides = Mapping[str, Any]
"""Keys of the experiment in dotted form, and the values that replace the file's: ``{"voq.large": 50}``."""
Watched = Callable[[float, int], None]
"""Called while an experiment runs: the fraction done, and the transmissions begun so far."""
PATIENCE = 60.0
"""Seconds for which the virtual time of Linux hosts may stand still."""
LARGEST_TEXT = 1 << 26
"""Bytes of an experiment's file at most."""


def text_of(file: Path) -> str:
    """The content of a text file without a byte order mark; raises :class:`SpecError` when it is missing, not
    UTF-8 or too large."""
    name = named(file)
    try:
        with file.open("rb") as stream:
            content = stream.read(LARGEST_TEXT + 1)
        if len(content) > LARGEST_TEXT:
            raise SpecError(f"{name}: larger than {LARGEST_TEXT >> 20} MiB; name a smaller file")
        return content.decode("utf-8-sig")
    except FileNotFoundError:
        meant = file.with_name(f"{file.name}.toml")
        hint = f": did you mean {named(meant)}?" if os.path.isfile(meant) else ""
        raise SpecError(f"{name}: no such file{hint}") from None
    except IsADirectoryError:
        raise SpecError(f"{name}: is a directory; name the experiment's .toml file") from None
    except OSError as e:
        raise SpecError(f"{name}: cannot be read: {e.strerror}") from None
    except ValueError as e:  # not UTF-8, or a name with a NUL
        raise SpecError(f"{name}: cannot be read as text: {e}; save it as UTF-8") from None


def named(path: str | Path) -> str:
    """A path for a message: printable whatever its bytes are, and shortened when it is very long."""
    text = str(path).encode("utf-8", errors="surrogateescape").decode("utf-8", errors="backslashreplace")
    text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return text if len(text) <= 300 else f"{text[:150]}...{text[-100:]}"


def check_patience(patience: float) -> float:
    """``patience``, if it is a number of seconds; raises :class:`PlanError`."""
    if not isinstance(patience, int | float) or not patience > 0:
        raise PlanError(f"patience = {patience!r}: write a number of seconds above 0, such as 60")
    return patience


@dataclass(frozen=True)
class Spec:
    """One experiment as the core reads it: the file's text, its path (for messages) and the overrides."""

    text: str
    path: str
    overrides: dict[str, Any] = field(default_factory=dict)
    sweep: bool = False
    """Whether the text may have a ``[sweep]`` table, which the core does not read."""
    congestion_control: dict[str, type] = field(default_factory=dict)
    """Classes of the user's that keys may name as congestion controls."""

    @classmethod
    def read(
        cls,
        path: str | Path,
        overrides: Overrides | None = None,
        *,
        sweep: bool = False,
        congestion_control: Mapping[str, type] | None = None,
    ) -> "Spec":
        """Read an experiment file; raises :class:`SpecError` when it is missing or not text."""
        if overrides is not None and not isinstance(overrides, Mapping):
            raise SpecError(f"overrides {overrides!r}: write keys with their values: {{'duration': '1ms'}}")
        file = Path(path)
        text = text_of(file)
        try:
            str(file).encode()
        except UnicodeEncodeError:
            raise SpecError(f"{named(file)}: its path is not UTF-8; rename it") from None
        return cls(text, str(file), dict(overrides or {}), sweep, dict(congestion_control or {}))

    def with_overrides(self, more: Overrides) -> "Spec":
        """This experiment with further overrides on top."""
        return replace(self, overrides={**self.overrides, **more})

    @functools.cached_property
    def document(self) -> dict[str, Any]:
        """The parsed file, overrides not applied."""
        try:
            return tomllib.loads(self.text)
        except (tomllib.TOMLDecodeError, RecursionError) as e:
            raise SpecError(f"{self.path}: {e}") from None

    def check(self) -> "Experiment":
        """Read, check and expand the experiment; raises :class:`SpecError` with all that is wrong."""
        if wrong := [key for key in self.overrides if not isinstance(key, str)]:
            raise SpecError(f"override {wrong[0]!r}: the name of a key is a text such as 'voq.large'")
        for key, value in self.overrides.items():
            if isinstance(value, int) and value.bit_length() > 128:  # Python prints no number of any length
                raise SpecError(f"{key}: a number of {value.bit_length()} bits is too large")
        try:
            read = _core.Experiment(
                self.text,
                self.path,
                self.overrides,
                allow_sweep=self.sweep,
                congestion_control=self.congestion_control,
            )
        except (_core.SpecError, TypeError, ValueError) as e:
            raise SpecError(str(e)) from None
        return Experiment(self, read)


@dataclass(frozen=True)
class Experiment:
    """A :class:`Spec` that was read and checked. One reading serves inspection, identity and run."""

    spec: Spec
    read: _core.Experiment

    @property
    def name(self) -> str:
        """The experiment's name, else its file's."""
        return self.read.name

    @functools.cached_property
    def resolved(self) -> dict[str, Any]:
        """The experiment with all its defaults, as nested tables."""
        tables: dict[str, Any] = json.loads(self.read.resolved)
        return tables

    @functools.cached_property
    def inputs(self) -> dict[str, str]:
        """The files that the experiment names (networks, flow sizes, flow lists), each with a hash of its
        content (32 hex digits)."""
        return {name: hash_of(_core.read_input(path)) for name, path in self.read.inputs.items()}

    def inspect(self) -> dict[str, Any]:
        """The network and traffic that would be built; nothing is run."""
        answer: dict[str, Any] = json.loads(self.read.inspect())
        return answer

    def linux_plan(self) -> str:
        """The plan of the experiment's Linux hosts, as JSON."""
        try:
            return self.read.linux_plan()
        except _core.SpecError as e:
            raise SpecError(str(e)) from None


@dataclass(frozen=True)
class Timeline:
    """A timeline that a run writes: a file for https://ui.perfetto.dev, and its flows and times."""

    path: str | Path
    flows: Sequence[int] | None = None
    """Numbers of the flows, which are shown with the queues that their packets pass; ``None``: all."""
    start: str | None = None
    """From when on, such as ``"1ms"``; ``None``: from the start of the run."""
    end: str | None = None
    """Until when; ``None``: to the end of the run."""

    def asked(self) -> dict[str, Any]:
        """The timeline's settings for an engine in another process."""
        flows = None if self.flows is None else sorted(set(self.flows))
        return {"path": str(Path(self.path).absolute()), "flows": flows, "start": self.start, "end": self.end}


@dataclass(frozen=True)
class Output:
    """The outcome of a run: the manifest, the tables, each a mapping from column to values, and its programs'
    outputs."""

    manifest: dict[str, Any]
    tables: dict[str, dict[str, Any]]
    programs: dict[str, bytes] = field(default_factory=dict)
    """Outputs of programs on Linux hosts, by file name: ``ping.out``, ``ping.err``."""


def hash_of(content: bytes) -> str:
    """The first half of the SHA-256 of ``content``, 32 hex digits."""
    return hashlib.sha256(content).hexdigest()[:32]


def version() -> str:
    """Version of the package, ``0.1.0``."""
    return _core.version()


def schema() -> str:
    """The JSON Schema (draft 2020-12) of experiments."""
    return _core.schema()


@functools.cache
def build() -> str:
    """Version and a hash of the compiled core: results of another build are not reused."""
    file = getattr(_core, "__file__", None)
    if file is None:
        return f"{version()}+none"
    with open(file, "rb") as stream:
        return f"{version()}+{hashlib.file_digest(stream, 'sha256').hexdigest()[:12]}"


def simulate(
    experiment: Experiment,
    progress: Callable[[float], None] | None = None,
    capture: str | Path | None = None,
    trace: Timeline | None = None,
    *,
    watched: Watched | None = None,
) -> Output:
    """Run ``experiment``, whose hosts are simulated, to its end. ``progress`` gets the fraction done,
    ``watched`` in its place also the transmissions begun so far; ``capture`` is a pcapng file to write,
    ``trace`` a timeline. Ctrl-C raises ``KeyboardInterrupt`` at once."""
    import numpy  # noqa: F401 - the core makes arrays; where its import fails or is interrupted, it panics

    timeline = None
    if trace is not None:
        flows = None if trace.flows is None else set(trace.flows)
        timeline = (str(trace.path), flows, trace.start, trace.end)
    report = watched if watched or progress is None else lambda part, _: progress(part)
    try:
        answer = experiment.read.run(report, None if capture is None else str(capture), timeline)
    except _core.SpecError as e:
        raise SpecError(str(e)) from None
    except _core.RunError as e:
        raise RunError(str(e)) from None
    return Output(json.loads(answer["manifest"]), answer["tables"])
