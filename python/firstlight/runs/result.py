"""A result: the manifest of a run and its tables, in memory or in a directory.

On disk a result is a directory with ``manifest.json`` (resolved spec, seed, version, digest, conservation,
warnings), one Parquet file per table and, if asked for, ``capture.pcapng``. It is written to a temporary
directory that is then renamed, so a result's directory is always complete. The manifest has the size and the
hash of every file, and as its last entry its own hash: what was damaged or edited afterwards is noticed.
"""

import functools
import hashlib
import itertools
import json
import math
import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from firstlight import stored
from firstlight.core import hash_of
from firstlight.errors import ResultError
from firstlight.runs.staging import Earlier, Staging, check_target, real

if TYPE_CHECKING:  # pandas takes 0.3 s to import, and processes that run points do without
    import pandas as pd
    import pyarrow as pa

DIGEST = "digest"
MANIFEST = "manifest.json"
CAPTURE = "capture.pcapng"
PROGRAMS = "programs"
UTILIZATION = "circuit_utilization_pct"
"""A metric of the summary: the share of the circuit's capacity that carried TCP payload."""
FILES = "files"
"""The manifest's entry with the size and the hash of every other file of the result."""
EARLIER = Earlier(MANIFEST, DIGEST, ("*.parquet", CAPTURE, PROGRAMS, "report.html"))
"""A result that may be replaced."""
OWN_HASH = re.compile(rb',\n  "hash": "([0-9a-f]{32})"\n}\n\Z')
"""How a manifest ends: its own hash, of all that stands before."""
SMALL = 1 << 26
"""Bytes of a file up to which its hash is compared when a result is searched for damage."""


class Result:
    """The outcome of one run.

    Tables are pandas frames, read when first asked for. Times are in the experiment's own units, that is with
    ``time_scale`` divided out; columns name their unit (``_us``, ``_bytes``, ``_packets``, ``_pct``).
    """

    def __init__(
        self,
        manifest: dict[str, Any],
        tables: Mapping[str, Mapping[str, Any]] | None = None,
        path: Path | None = None,
        programs: Mapping[str, bytes] | None = None,
    ) -> None:
        self.manifest = manifest
        self.path = path
        """The result's directory; ``None`` while the result is only in memory."""
        self._tables = tables or {}
        self._programs = programs or {}
        self._frames: dict[str, pd.DataFrame] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_frames": {}}  # another process makes frames of its own

    def table(self, name: str) -> "pd.DataFrame":
        """The table ``name`` (one of ``tables``) as a frame; raises :class:`ResultError` when the run has no
        such table."""
        if name not in self._frames:
            self._frames[name] = self._load(name)
        return self._frames[name]

    def _load(self, name: str) -> "pd.DataFrame":
        import pandas as pd
        import pyarrow as pa

        if name not in self._tables:
            frame: pd.DataFrame = self._stored(name).to_pandas(use_threads=False)
            return frame
        columns = _columns(self._tables[name]).items()
        return pd.DataFrame(
            {k: pd.array(v, dtype="str") if isinstance(v, pa.Array) else v for k, v in columns}
        )

    def lists(self, name: str) -> dict[str, list[Any]]:
        """The columns of the table ``name`` as lists, for which pandas need not be imported."""
        if name in self._tables:
            return {n: _array(values).to_pylist() for n, values in _columns(self._tables[name]).items()}
        columns: dict[str, list[Any]] = self._stored(name).to_pydict()
        return columns

    def _stored(self, name: str) -> "pa.Table":
        """A table as its file has it."""
        if self.path is not None and name in self.tables:
            file = self.path / f"{name}.parquet"
            return _read_parquet(file, self._intact(file))
        raise ResultError(f"this result has no table '{name}'; it has: {', '.join(self.tables)}")

    def _intact(self, file: Path) -> bytes:
        """The content of a file of the result; raises :class:`ResultError` when it is not what was stored."""
        try:
            content = file.read_bytes()
        except OSError as e:
            raise ResultError(f"{file}: cannot be read: {e.strerror}") from None
        assert self.path is not None
        entry = self.manifest[FILES].get(str(file.relative_to(self.path)))
        if entry is None or entry["hash"] != hash_of(content):
            raise ResultError(f"{file}: damaged or edited after the run; run the experiment again")
        return content

    def check(self, largest: float = math.inf) -> None:
        """Raise :class:`ResultError` when a file of a stored result is not what was stored. Of files with
        more bytes than ``largest`` only the size is compared, by :func:`load`."""
        assert self.path is not None, "only a stored result has files"
        for name, entry in self.manifest.get(FILES, {}).items():
            if entry["bytes"] <= largest:
                self._intact(self.path / name)

    @property
    def tables(self) -> list[str]:
        """Names of the tables that this result has."""
        stored = [Path(name) for name in self.manifest.get(FILES, {}) if self.path is not None]
        return sorted({*self._tables, *(file.stem for file in stored if file.suffix == ".parquet")})

    @functools.cached_property
    def summary(self) -> dict[str, float]:
        """Metric -> value for the measured pair and the whole run; units are in ``table("summary")``."""
        columns = self.lists("summary")
        both = zip(columns["metric"], columns["value"], strict=True)
        return {sys.intern(str(metric)): float(value) for metric, value in both}

    @property
    def row(self) -> dict[str, Any]:
        """The result's part of its point's row in a sweep: every metric of the summary, then the digest."""
        return {**self.summary, DIGEST: self.digest}

    @property
    def flows(self) -> "pd.DataFrame":
        """One row per flow: ends, controller, start and completion time (us), bytes, retransmissions,
        timeouts, RTTs."""
        return self.table("flows")

    @property
    def fct(self) -> "pd.DataFrame":
        """One row per workload and group of flow sizes: completion times (us) and slowdowns."""
        return self.table("fct")

    @property
    def jobs(self) -> "pd.DataFrame":
        """One row per job of a workload of messages (a file written, a reducer's fetch): start and duration
        (us), bytes, throughput (Gb/s)."""
        return self.table("jobs")

    @property
    def queues(self) -> "pd.DataFrame":
        """One row per port of ``measure.queues``: packets, utilization and waits (us)."""
        return self.table("queues")

    @property
    def series(self) -> "pd.DataFrame":
        """Mean in-order sequence (bytes per flow) and VOQ length (packets) of the pair against time (us),
        folded over weeks."""
        return self.table("series")

    @property
    def latency(self) -> "pd.DataFrame":
        """Histogram of the pair's packet latencies (us), by the network that carried them."""
        return self.table("latency")

    @property
    def rate_limiters(self) -> "pd.DataFrame":
        """One row per change of a rate that QCN limits: time (us), host, flow, current and target (Mb/s)."""
        return self.table("rate_limiters")

    @property
    def ports(self) -> "pd.DataFrame":
        """One row per port: packets offered, delivered, dropped, held and marked; peak queue."""
        return self.table("ports")

    @property
    def pairs(self) -> "pd.DataFrame":
        """One row per rack pair with traffic: packets that its VOQ accepted, dropped, and sent over each
        network."""
        return self.table("pairs")

    @property
    def week(self) -> "pd.DataFrame":
        """The schedule: start and end (us) of each day and its matching (``0->1 1->0``)."""
        return self.table("week")

    @property
    def circuits(self) -> "pd.DataFrame":
        """The circuits that a control loop set up: one row per circuit of each day, with estimated demand and
        carried bytes."""
        return self.table("circuits")

    @property
    def name(self) -> str:
        """The experiment's name."""
        return str(self.manifest.get("name", ""))

    @property
    def digest(self) -> str:
        """Digest of every packet's exit and drop: equal for equal spec, seed and version on any machine."""
        return str(self.manifest["digest"])

    @property
    def warnings(self) -> list[str]:
        """Reasons to doubt the result; empty if there are none."""
        return [str(w) for w in self.manifest.get("warnings", [])]

    @property
    def invalid(self) -> list[str]:
        """Reasons why the run is not what the experiment asked for; empty on a valid run."""
        return [str(reason) for reason in self.manifest.get("invalid", [])]

    @property
    def capture(self) -> Path | None:
        """The packet capture (pcapng); ``None`` without one."""
        file = None if self.path is None else self.path / CAPTURE
        return file if file is not None and file.is_file() else None

    @property
    def programs(self) -> dict[str, str]:
        """The output of each program on a Linux host, by the program's name. Its error output is in the
        result's directory as ``programs/NAME.err``."""
        outputs = self._outputs().items()
        return {n.removesuffix(".out"): b.decode(errors="replace") for n, b in outputs if n.endswith(".out")}

    def _outputs(self) -> dict[str, bytes]:
        if self.path is None:
            return dict(self._programs)
        return {f.name: f.read_bytes() for f in sorted((self.path / PROGRAMS).glob("*")) if f.is_file()}

    def __repr__(self) -> str:
        where = "in memory" if self.path is None else str(self.path)
        return f"<Result {self.name!r} digest {self.digest} {where}>"

    def save(self, directory: str | Path) -> "Result":
        """Write the result as ``directory``, completely or not at all; an earlier result there is
        replaced."""
        target = real(Path(directory))
        check_target(target, EARLIER)
        with Staging(target) as staging:
            if self.capture is not None:
                shutil.copy2(self.capture, staging.path / CAPTURE)
            staging.commit(self)
        return load(target)

    def write(self, directory: Path) -> None:
        """Write manifest, tables and programs' outputs into an existing directory."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        files: dict[str, dict[str, Any]] = {}

        def put(name: str, content: "bytes | pa.Buffer") -> None:
            with (directory / name).open("wb") as stream:
                stream.write(content)
            files[name] = {"bytes": len(content), "hash": hash_of(content)}

        for name in self.tables:
            columns = self._tables.get(name)
            if columns is None:
                table = pa.Table.from_pandas(self.table(name))
            else:
                arrays = {n: _array(values) for n, values in columns.items()}
                # Of a column that may lack values Parquet stores which ones it has.
                fields = [pa.field(n, a.type, nullable=a.null_count > 0) for n, a in arrays.items()]
                table = pa.table(list(arrays.values()), schema=pa.schema(fields))
            texts = [field.name for field in table.schema if not pa.types.is_primitive(field.type)]
            # Without Arrow's schema, texts that are given once are read as plain texts.
            options = {"use_dictionary": texts, "write_statistics": False, "store_schema": False}
            table_file = pa.BufferOutputStream()  # pyarrow writes in many small steps
            pq.write_table(table, table_file, **options)
            put(f"{name}.parquet", table_file.getvalue())
        for name, output in self._outputs().items():
            (directory / PROGRAMS).mkdir(exist_ok=True)
            put(f"{PROGRAMS}/{name}", output)
        if (capture := directory / CAPTURE).is_file():
            files[CAPTURE] = _described(capture)
        put(MANIFEST, _sealed({**self.manifest, FILES: dict(sorted(files.items()))}))


def _columns(table: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of a table as they are used. One whose texts the core gave once, with their number in each
    row, becomes an array of texts."""
    import pyarrow as pa

    def column(values: Any) -> Any:
        return _array(values).cast(pa.string()) if isinstance(values, tuple) else values

    return {name: column(values) for name, values in table.items()}


def _array(values: Any) -> "pa.Array | pa.ChunkedArray":
    """A column for pyarrow, made of its bytes: converting it pyarrow would import pandas, which takes longer
    than many a run."""
    import numpy as np
    import pyarrow as pa

    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    if isinstance(values, tuple):
        texts, codes = values
        return pa.DictionaryArray.from_arrays(_array(codes), _array(texts))
    if isinstance(values, list) and all(isinstance(v, str) for v in values):
        texts = [v.encode() for v in values]
        ends = list(itertools.accumulate(map(len, texts), initial=0))
        if ends[-1] < 1 << 31:  # else it takes more than one array
            kind, parts = pa.string(), [np.array(ends, dtype=np.int32), b"".join(texts)]
            return pa.Array.from_buffers(kind, len(values), [None, *map(pa.py_buffer, parts)])
    elif isinstance(values, np.ndarray) and values.dtype.kind in "biuf":
        content = (
            np.packbits(values, bitorder="little")
            if values.dtype.kind == "b"
            else np.ascontiguousarray(values)
        )
        kind = pa.from_numpy_dtype(values.dtype)
        return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(content)])
    return pa.array(values)


def _described(file: Path) -> dict[str, Any]:
    """A file's entry in the manifest."""
    with file.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()[:32]
        return {"bytes": stream.tell(), "hash": digest}


def _sealed(manifest: dict[str, Any]) -> bytes:
    """A manifest as its file has it, with its own hash as the last entry."""
    entries = {k: v for k, v in manifest.items() if k != "hash"}
    body = json.dumps(entries, indent=2).encode().removesuffix(b"\n}")
    return body + f',\n  "hash": "{hash_of(body)}"\n}}\n'.encode()


def _read_parquet(file: Path, content: bytes) -> "pa.Table":
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.ParquetFile(pa.BufferReader(content)).read(use_threads=False)
    except (pa.ArrowException, OSError, ValueError, KeyError) as e:
        reason = str(e).splitlines()[0] if str(e) else type(e).__name__
        raise ResultError(f"{file}: damaged: {reason}; run the experiment again") from None


def load(directory: str | Path) -> Result:
    """Open the result stored in ``directory``; its tables are read when first asked for. Raises
    :class:`ResultError` when there is none, or its manifest is not the one that was stored."""
    path = Path(directory)
    file = path / MANIFEST
    try:
        content = stored.content(file)
        manifest = json.loads(content)
    except FileNotFoundError:
        why = f"not a result (it has no {MANIFEST})" if path.exists() else "no such directory"
        if (path / "points").is_dir():
            why += f"; the results of a sweep are in {path / 'points'}"
        raise ResultError(f"{path}: {why}") from None
    except NotADirectoryError:
        raise ResultError(f"{path}: not a directory; name a result's directory") from None
    except (OSError, ValueError, RecursionError) as e:
        raise ResultError(f"{file}: cannot be read: {e}; run the experiment again") from None
    if not isinstance(manifest, dict) or "digest" not in manifest:
        raise ResultError(f"{file}: not the manifest of a result (it has no digest)")
    end = OWN_HASH.search(content)
    if end is None or end[1].decode() != hash_of(content[: end.start()]):
        raise ResultError(f"{file}: edited or damaged after the run; run the experiment again")
    _check_files(path, manifest)
    return Result(manifest, path=path)


class Results(Sequence[Result]):
    """Stored results, each opened when it is asked for: those of a large sweep do not fit in memory."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = paths

    def __len__(self) -> int:
        return len(self._paths)

    @overload
    def __getitem__(self, at: int) -> Result: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Result]: ...
    def __getitem__(self, at: int | slice) -> Result | Sequence[Result]:
        return Results(self._paths[at]) if isinstance(at, slice) else load(self._paths[at])


def _check_files(path: Path, manifest: dict[str, Any]) -> None:
    """Raise :class:`ResultError` unless every file is there in its size."""
    for name, entry in manifest.get(FILES, {}).items():
        file = f"{path}/{name}"  # not a Path: a finished sweep has many files
        try:
            size = os.stat(file).st_size
        except OSError as e:
            raise ResultError(f"{file}: cannot be read: {e.strerror}; run the experiment again") from None
        if size != entry["bytes"]:
            raise ResultError(
                f"{file}: damaged: {size} bytes instead of {entry['bytes']}; run the experiment again"
            )


def is_result(path: Path) -> bool:
    """Whether ``path`` holds a result, sound or not."""
    return (path / MANIFEST).is_file()


def is_sound(path: Path) -> bool:
    """Whether ``path`` holds a result of which nothing is missing, damaged or edited. Of files larger than
    :data:`SMALL` only the size is compared."""
    try:
        load(path).check(SMALL)
    except ResultError:
        return False
    return True
