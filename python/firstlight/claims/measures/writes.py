"""Metrics of the writes of bulk reads (workload ``key_value``).

Judd, NSDI'15, section 2, counts such writes as flows: "packets demarcated by TCP PUSH flags
within a single TCP connection".

- ``small_writes_pct``: of all writes those below 10 kB.
- ``large_bytes_pct``: of their bytes those in the other writes.
- ``bytes_pct: NAME``: of their bytes those of workload NAME.

A read asks for each of its values with one write, or two where the request has a header. Each value is one
write. The writes are those of the reads that completed.
"""

from firstlight.claims.measures.units import in_bytes
from firstlight.runs.result import Result

SMALL = 10_000
"""Writes below so many bytes are small."""


def metrics(result: Result) -> dict[str, float]:
    """The metrics; none where no bulk read is complete."""
    by_name = {name: _writes(result, name, keys) for name, keys in _bulk_reads(result)}
    every = [write for writes in by_name.values() for write in writes]
    count, total = sum(n for _, n in every), _bytes(every)
    if not count:
        return {}
    return {
        "small_writes_pct": 100 * sum(n for size, n in every if size < SMALL) / count,
        "large_bytes_pct": 100 * _bytes([(size, n) for size, n in every if size >= SMALL]) / total,
        **{f"bytes_pct: {name}": 100 * _bytes(writes) / total for name, writes in by_name.items()},
    }


def _bulk_reads(result: Result) -> list[tuple[str, dict[str, str]]]:
    """The name and the keys of each workload of bulk reads."""
    tables = enumerate(result.manifest.get("spec", {}).get("workload", []))
    return [
        (keys.get("name", f"workload.{i}"), keys) for i, keys in tables if keys.get("kind") == "key_value"
    ]


def _writes(result: Result, name: str, keys: dict[str, str]) -> list[tuple[float, int]]:
    """The sizes of the writes of a workload, and how many there are of each."""
    jobs = result.table("jobs")
    reads = int(jobs.loc[jobs["workload"] == name, "duration_us"].notna().sum())
    values = reads * int(keys["values"])
    header, request = in_bytes(keys.get("header", "0B")), in_bytes(keys["request"])
    sizes = [size for size in (header, request - header, in_bytes(keys["size"])) if size]
    return [(size, values) for size in sizes]


def _bytes(writes: list[tuple[float, int]]) -> float:
    return sum(size * n for size, n in writes)
