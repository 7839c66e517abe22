"""A bundle: one ZIP file with results and all that is needed to run them again.

It holds the experiments with the files that they name, the results, and in ``bundle.json`` the versions and,
for each point, which experiment it ran. :func:`unpack` makes points of it, whose digests are then compared.
"""

import importlib.metadata
import json
import os
import platform
import re
import shlex
import zipfile
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from firstlight import core
from firstlight.core import Spec, named
from firstlight.errors import PlanError, ResultError
from firstlight.linux import installed
from firstlight.runs import pool
from firstlight.runs.result import Result, load
from firstlight.runs.staging import Staging, real, replacing
from firstlight.runs.sweep import STORE

INDEX = "bundle.json"
README = "README.txt"
EXPERIMENTS = "experiments"
RESULTS = "results"
FORMAT = 1
OLDEST = (1980, 1, 1, 0, 0, 0)
"""The time of every file in a bundle: equal results give equal bytes."""
TEXT = """\
Results of Firstlight {version}, with all that is needed to run them again:

    firstlight rerun {name}

runs every point and says whether its digest, a hash of every packet's exit and drop, is the one in this file.
Equal digests need the same version of Firstlight, and for Linux hosts the same kernel; {index} names both.
"""


@dataclass(frozen=True)
class Bundle:
    """The content of a bundle."""

    file: Path
    points: int
    left_out: list[str]
    """Programs on Linux hosts that read the experiment's folder; what they read there is not packed."""


@dataclass(frozen=True)
class Unpacked:
    """A bundle's points, ready to be run, and the result that the bundle has of each."""

    version: str
    """The version of Firstlight that made the results."""
    points: list[pool.Point]
    results: list[Result]

    def different(self, ours: Sequence[Result]) -> list[tuple[str, Result, Result]]:
        """The points whose digests differ: label, the bundle's result, this machine's."""
        both = zip(self.points, self.results, ours, strict=True)
        return [(p.label, theirs, own) for p, theirs, own in both if theirs.digest != own.digest]


def pack(directory: Path, results: Mapping[str, Result], out: Path) -> Bundle:
    """Pack ``directory`` and its ``results``, by label, into the file ``out``.

    Raises :class:`ResultError` when a result or an input has changed since the run, and :class:`PlanError`
    where a run cannot be repeated elsewhere.
    """
    if out.exists() and not _is_bundle(out):
        raise ResultError(f"{out}: exists and is not a bundle; name another file with --out")
    experiments: dict[tuple[str, str], _Experiment] = {}
    for label, result in results.items():
        place = _place_of(label, result)
        experiments.setdefault(place, _Experiment(len(experiments), *place)).add_inputs(label, result)
    contents = _contents(directory, results.values())
    kernels = {json.dumps(k): k for r in results.values() if (k := r.manifest.get("kernel"))}
    index = {
        "format": FORMAT,
        "version": " and ".join(sorted({str(r.manifest["version"]) for r in results.values()})),
        "kernels": list(kernels.values()),
        "machine": platform.platform(),
        "python": platform.python_version(),
        "packages": _packages(),
        "points": [
            {
                "label": label,
                "experiment": experiments[_place_of(label, result)].name,
                "result": _inside(directory, _path(result)),
            }
            for label, result in results.items()
        ],
    }
    with replacing(out) as stream, zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        readme = TEXT.format(version=index["version"], name=shlex.quote(out.name), index=INDEX)
        _write(archive, README, readme.encode())
        _write(archive, INDEX, json.dumps(index, indent=2).encode())
        for experiment in experiments.values():
            for name, content in experiment.files():
                _write(archive, name, content)
        for name, content in contents:
            _write(archive, name, content)
    programs = (p["run"] for r in results.values() for p in r.manifest.get("spec", {}).get("program", []))
    outside = {run for run in programs if "FIRSTLIGHT_EXPERIMENT" in run or "FIRSTLIGHT_ORIGIN" in run}
    return Bundle(out, len(results), sorted(outside))


def check(file: Path) -> None:
    """Raise :class:`ResultError` for what is no bundle, before a directory is made for it."""
    if file.exists() and not _is_bundle(file):
        raise ResultError(f"{file}: not a bundle; name what `firstlight bundle` wrote")


def unpack(file: Path, folder: Path) -> Unpacked:
    """Unpack a bundle as ``folder``; raises :class:`ResultError` when it is none, or is damaged."""
    try:
        with zipfile.ZipFile(file) as archive:
            index = json.loads(archive.read(INDEX))
            version = str(index["version"])
            entries = [
                (str(p["label"]), _within(folder, p["experiment"]), _within(folder, p["result"]))
                for p in index["points"]
            ]
            with Staging(folder) as staging:
                staging.commit(_Content(archive))
    except FileNotFoundError:
        raise ResultError(f"{file}: no such file; name what `firstlight bundle` wrote") from None
    except (KeyError, TypeError, RecursionError):
        raise ResultError(f"{file}: its {INDEX} is not one of a bundle; make or fetch it again") from None
    except (zipfile.BadZipFile, zlib.error, ValueError, EOFError, RuntimeError) as e:
        raise ResultError(f"{file}: not a bundle, or damaged: {e}; make or fetch it again") from None
    except OSError as e:
        raise ResultError(f"{file}: cannot be read: {e.strerror or e}") from None
    if not entries:
        raise ResultError(f"{file}: its {INDEX} names no point; make or fetch it again")
    results = [load(place) for _, _, place in entries]
    points = [
        pool.Point(Spec.read(experiment, result.manifest.get("overrides"), sweep=True), label)
        for (label, experiment, _), result in zip(entries, results, strict=True)
    ]
    return Unpacked(version, pool.checked(points), results)


class _Content:
    """The files of a bundle."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive

    def write(self, directory: Path) -> None:
        """Write them; names that lead out of the directory lose what does so."""
        self._archive.extractall(directory)


class _Experiment:
    """One experiment in a bundle: its text, and the files that it names, each at its place beside it."""

    def __init__(self, number: int, path: str, text: str) -> None:
        self._folder = f"{EXPERIMENTS}/{number}"
        self._path = Path(path)
        self._text = text
        self._inputs: dict[str, bytes] = {}

    @property
    def name(self) -> str:
        """The experiment's name in the bundle."""
        return self._named(self._path.name)

    def _named(self, name: str) -> str:
        """The place in the bundle of a file beside the experiment; ``..`` stays within the same folder."""
        depth = max((os.path.normpath(one).split("/").count("..") for one in self._inputs), default=0)
        return os.path.normpath("/".join([self._folder, *["folder"] * depth, name]))

    def add_inputs(self, label: str, result: Result) -> None:
        """Read the files that a run named, as they were when it ran."""
        if own := result.manifest.get("congestion_control"):
            raise PlanError(
                f"{label}: its congestion control {', '.join(own)} is a Python class, which no bundle holds: "
                "write it in Rust (firstlight cc new), or send its source besides"
            )
        for name, wanted in result.manifest["inputs"].items():
            if Path(name).is_absolute():
                raise PlanError(
                    f"{label}: the experiment names {name}, which other machines do not have: write its path "
                    "relative to the experiment's file, and run again"
                )
            file = self._path.parent / name
            try:
                content = file.read_bytes()
            except OSError as e:
                raise ResultError(
                    f"{file}: cannot be read: {e.strerror}; bundle from the folder where it was run"
                ) from None
            if core.hash_of(content) != wanted:
                raise ResultError(f"{file}: has changed since {label} was run; run the experiment again")
            self._inputs[name] = content

    def files(self) -> Iterator[tuple[str, bytes]]:
        """Names in the bundle, and contents."""
        yield self.name, self._text.encode()
        for name, content in sorted(self._inputs.items()):
            yield self._named(name), content


def _place_of(label: str, result: Result) -> tuple[str, str]:
    """Path and text of the experiment that a result is of."""
    if installed.is_dilated(result.manifest.get("spec", {})):
        raise PlanError(f"{label}: hosts in dilated time run in real time, and their digests do not repeat")
    experiment = result.manifest.get("experiment")
    if not isinstance(experiment, dict):
        raise ResultError(
            f"{_path(result)}: does not hold its experiment, as results of this version do; run it again"
        )
    return str(experiment["path"]), str(experiment["text"])


def _path(result: Result) -> Path:
    assert result.path is not None, "results in a bundle are stored"
    return real(result.path)


def _inside(directory: Path, path: Path) -> str:
    """The name of a file of ``directory`` in a bundle."""
    return Path(RESULTS, os.path.relpath(path, real(directory))).as_posix()


def _files(directory: Path, wanted: set[Path]) -> Iterator[Path]:
    """The files of ``directory``, of its points only those ``wanted``, without what is unfinished."""
    for folder, folders, names in os.walk(real(directory)):
        here = Path(folder)
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".") and (here.name != STORE or here / name in wanted)
        )
        yield from (here / name for name in sorted(names) if not name.startswith("."))


def _contents(directory: Path, results: Collection[Result]) -> Iterator[tuple[str, bytes]]:
    """Names in the bundle and contents of the files of ``directory``, each read when it is asked for; raises
    :class:`ResultError` before that for a file that cannot be packed or is damaged."""
    files = list(_files(directory, {_path(result) for result in results}))
    for file in files:
        if not file.is_file():
            raise ResultError(f"{named(file)}: it is no file; move it out of {named(directory)}")
    for result in results:
        result.check()
    return ((_inside(directory, file), _read(file)) for file in files if not _is_bundle(file))


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as e:
        raise ResultError(f"{named(file)}: cannot be read: {e.strerror}; make it readable") from None


def _write(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    entry = zipfile.ZipInfo(name, OLDEST)
    entry.external_attr = 0o644 << 16
    entry.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(entry, content)


def _is_bundle(file: Path) -> bool:
    if not file.is_file():  # a device may have no end
        return False
    try:
        with zipfile.ZipFile(file) as archive:
            return INDEX in archive.namelist()
    except (OSError, zipfile.BadZipFile):
        return False


def _within(folder: Path, name: str) -> Path:
    """A path of a bundle in the ``folder`` where it was unpacked."""
    path = (folder / name).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise ValueError(f"{name} is not in the bundle")
    return path


def _packages() -> dict[str, str]:
    """Versions of the packages that Firstlight needs."""
    try:
        needed = importlib.metadata.requires("firstlight") or []
    except importlib.metadata.PackageNotFoundError:
        return {}
    names = [re.split(r"[^\w.-]", line)[0] for line in needed if "extra ==" not in line]
    return {name: importlib.metadata.version(name) for name in names}
