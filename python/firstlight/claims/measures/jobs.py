"""Times of jobs as metrics, from table ``jobs``.

``job_p95_us``: the time that 95 % of the jobs that completed do not exceed, and so for the others of
``PERCENTILES``; of the jobs of workload NAME ``job_p50_us: NAME`` and ``job_p99_us: NAME``. Of paced writers
(:doc:`docs/models/applications.md`), whose jobs are the steps of their pace, ``step 1: max_ms`` and
``step 1: mean_ms`` are the times of the second step, over the writers.
"""

from firstlight.numbers import quantiles
from firstlight.runs.result import Result

PERCENTILES = (10, 25, 75, 90, 95)
"""Percentiles that the summary does not have."""


def metrics(result: Result) -> dict[str, float]:
    """The metrics of table ``jobs``; none where no job is complete."""
    if "jobs" not in result.tables:
        return {}
    jobs = result.table("jobs")
    done = jobs[jobs["duration_us"].notna()]
    if done.empty:
        return {}
    values = quantiles(done["duration_us"], [p / 100 for p in PERCENTILES])
    found = {f"job_p{p}_us": float(value) for p, value in zip(PERCENTILES, values, strict=True)}
    for name, rows in done.groupby("workload"):
        p50, p99 = (float(value) for value in quantiles(rows["duration_us"], [0.5, 0.99]))
        found |= {f"job_p50_us: {name}": p50, f"job_p99_us: {name}": p99}
    for number, start in enumerate(_steps(result)):
        times = jobs["duration_us"][jobs["start_us"] == start] / 1e3
        if times.notna().all():  # else some writer has not caught up: no time is known
            found |= {
                f"step {number}: max_ms": float(times.max()),
                f"step {number}: mean_ms": float(times.mean()),
            }
    return found


def _steps(result: Result) -> list[float]:
    """Times at which paced writers change their pace, in us."""
    kinds = [w.get("kind") for w in result.manifest["spec"].get("workload", [])]
    return sorted(set(result.table("jobs")["start_us"].dropna())) if kinds == ["paced"] else []
