"""Paper, ours, difference: the rows of a reproduction."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from itertools import product
from math import isfinite
from typing import Any

from firstlight.claims.claim import HOSTS, At, Claim, Curve, Hosts, Kind, Mode, short
from firstlight.runs.days import emulated, mean_voq_in_day
from firstlight.runs.result import Result

UTILIZATION = "circuit_utilization_pct"
TAILS = ("p99_all_us", "p99_circuit_us", "p99_packet_us")
MEDIANS = ("p50_all_us", "p50_circuit_us", "p50_packet_us")
GAIN = "utilization_gain"
SUMMARY_NAMES = {"fct_s": "fct_last_s"}
"""Where a reference's column is called otherwise than our summary's metric."""


@dataclass(frozen=True)
class Row:
    """One number of a paper beside ours.

    ``paper`` is always what the paper's authors published (``None``: they gave no number) and ``difference``
    is ours minus it. ``ours`` was measured on ``hosts``; for simulated ones ``linux`` is what a real Linux
    stack gave at the same time scale: Linux hosts in the same reproduction, else the claim's ``linux.csv``.
    """

    figure: str
    point: str
    metric: str
    unit: str
    paper: float | None
    ours: float | None
    time_scale: int
    linux: float | None = None
    group: str = ""
    hosts: Hosts = "simulated"

    @property
    def difference(self) -> float | None:
        """Ours minus the paper's."""
        return minus(self.ours, self.paper)

    @property
    def linux_difference(self) -> float | None:
        """Ours minus the real Linux stack's."""
        return minus(self.ours, self.linux)

    def as_dict(self) -> dict[str, Any]:
        """The row as ``--json`` prints it."""
        fields = {k: v for k, v in asdict(self).items() if k != "group"}
        fields["difference"] = rounded(self.difference)
        fields["linux_difference"] = rounded(self.linux_difference)
        order = ("figure", "point", "metric", "paper", "ours", "difference", "unit", "time_scale", "hosts")
        fields["ours"] = rounded(self.ours)
        return {k: fields[k] for k in (*order, "linux", "linux_difference")}


@dataclass
class Outcome:
    """What came out of one claim: a result per curve and point."""

    claim: Claim
    mode: Mode
    results: dict[tuple[Hosts, str, At], Result] = field(default_factory=dict)

    @property
    def hosts(self) -> tuple[Hosts, ...]:
        """The kinds of hosts that there are results of."""
        return tuple(h for h in HOSTS if any(kind == h for kind, _, _ in self.results))

    def ats(self, hosts: Hosts | None = None) -> list[At]:
        """The points that there are results of, on ``hosts`` or on any, in the claim's order."""
        known = {at for kind, _, at in self.results if hosts in (kind, None)}
        return [at for at in product(*(axis.values for axis in self.claim.axes)) if at in known]

    def runs(self) -> list[tuple[Hosts, Curve]]:
        """Each curve on each kind of hosts, where there are results of it."""
        there = {(kind, name) for kind, name, _ in self.results}
        return [(h, c) for c in self.claim.curves for h in HOSTS[::-1] if (h, c.name) in there]

    def result(self, curve: Curve, at: At, hosts: Hosts = "simulated") -> Result:
        """The result of one point of one curve."""
        return self.results[hosts, curve.name, at]

    def metric(self, curve: Curve, at: At, name: str, hosts: Hosts = "simulated") -> float | None:
        """One summary metric, ``None`` when it was not measured."""
        if (hosts, curve.name, at) not in self.results:
            return None
        value = self.result(curve, at, hosts).summary.get(SUMMARY_NAMES.get(name, name))
        return value if value is not None and isfinite(value) else None

    def beside(self, curve: Curve, at: At, name: str, hosts: Hosts) -> float | None:
        """What a real Linux stack gave, beside a metric on simulated hosts."""
        if hosts == "linux":
            return None
        measured = self.metric(curve, at, name, "linux")
        if measured is not None:
            return measured
        return self.claim.expected("linux", at, curve.time_scale).get(name)

    def rows(self) -> list[Row]:
        """The claim's rows."""
        return list(ROWS[self.claim.kind](self))


def minus(a: float | None, b: float | None) -> float | None:
    """``a - b`` where both are known."""
    return None if a is None or b is None else a - b


def rounded(value: float | None) -> float | None:
    """Six significant digits: more would only be noise in a text."""
    return None if value is None else float(f"{value:.6g}")


def _measured(outcome: Outcome, panels: Mapping[str, str]) -> Iterator[Row]:
    """Rows of the metrics that a claim's expected table has; ``panels`` maps a metric to its figure."""
    claim = outcome.claim
    for at in outcome.ats():
        for hosts, curve in outcome.runs():
            if curve.variant == "base" or (hosts, curve.name, at) not in outcome.results:
                continue
            paper = claim.expected("paper", at, curve.time_scale)
            for metric, figure in panels.items():
                yield Row(
                    figure,
                    claim.label(at),
                    metric,
                    "%" if metric.endswith("_pct") else "s" if metric.endswith("_s") else "us",
                    paper.get(metric),
                    outcome.metric(curve, at, metric, hosts),
                    curve.time_scale,
                    outcome.beside(curve, at, metric, hosts),
                    claim.name,
                    hosts,
                )


def _points_rows(outcome: Outcome) -> Iterator[Row]:
    figure = outcome.claim.figure
    panels = (
        {UTILIZATION: f"{figure}a"}
        | dict.fromkeys(TAILS, f"{figure}c")
        | dict.fromkeys(MEDIANS, f"{figure} (median)")
    )
    return _measured(outcome, panels)


def _grid_rows(outcome: Outcome) -> Iterator[Row]:
    return _measured(outcome, dict.fromkeys((UTILIZATION, TAILS[0]), outcome.claim.figure))


def _fct_rows(outcome: Outcome) -> Iterator[Row]:
    return _measured(outcome, {"fct_s": outcome.claim.figure})


def _sequence_rows(outcome: Outcome) -> Iterator[Row]:
    claim = outcome.claim
    late = {key: mean_voq_in_day(result) for key, result in outcome.results.items()}
    for hosts, curve in outcome.runs():
        linux = late.get(("linux", curve.name, ())) if hosts == "simulated" else None
        for fact in claim.facts:
            yield Row(
                claim.figure,
                "days",
                fact.metric,
                "packets",
                fact.paper,
                late[hosts, curve.name, ()],
                curve.time_scale,
                linux,
                claim.name,
                hosts,
            )
        yield Row(
            claim.figure,
            "whole run",
            UTILIZATION,
            "%",
            None,
            outcome.metric(curve, (), UTILIZATION, hosts),
            curve.time_scale,
            outcome.beside(curve, (), UTILIZATION, hosts),
            claim.name,
            hosts,
        )


def gains(outcome: Outcome, curve: Curve, hosts: Hosts) -> dict[At, float | None]:
    """Utilization gained over the base curve of the same time scale, per point."""
    base = next(c for c in outcome.claim.curves if c.variant == "base" and c.time_scale == curve.time_scale)
    return {
        at: minus(outcome.metric(curve, at, UTILIZATION, hosts), outcome.metric(base, at, UTILIZATION, hosts))
        for at in outcome.ats(hosts)
    }


def mean(values: Iterable[float | None]) -> float | None:
    """The mean of those that are known."""
    known = [v for v in values if v is not None]
    return sum(known) / len(known) if known else None


def _gain_rows(outcome: Outcome) -> Iterator[Row]:
    """Gains per point and on average."""
    claim = outcome.claim
    papers = {f.metric: f.paper for f in claim.facts}
    for hosts, curve in outcome.runs():
        if curve.variant == "base":
            continue
        mine = gains(outcome, curve, hosts)
        real = gains(outcome, curve, "linux") if hosts == "simulated" else {}
        entries = [("mean of all sizes", papers.get("mean"), mean(mine.values()), mean(real.values()))]
        entries += [
            (claim.label(at), papers.get(short(at[0])), gain, real.get(at)) for at, gain in mine.items()
        ]
        for point, paper, ours, linux in entries:
            yield Row(
                claim.figure,
                point,
                GAIN,
                "points",
                paper,
                ours,
                curve.time_scale,
                linux,
                claim.name,
                hosts,
            )


def _variants_rows(outcome: Outcome) -> Iterator[Row]:
    """Utilization of each variant and, where there is a base to gain over, the mean gain of all."""
    claim = outcome.claim
    papers = {f.metric: f.paper for f in claim.facts}
    yield from _measured(outcome, {UTILIZATION: claim.figure})
    for hosts, curve in outcome.runs():
        if "mean" not in papers or curve.variant == "base":
            continue
        every = gains(outcome, curve, hosts)
        yield Row(
            claim.figure,
            f"mean of {len(every)} variants" if hosts == "linux" else f"mean of our {len(every)} variants",
            GAIN,
            "points",
            papers["mean"] if hosts == "linux" else None,
            mean(every.values()),
            curve.time_scale,
            None,
            claim.name,
            hosts,
        )


def _validation_rows(outcome: Outcome) -> Iterator[Row]:
    """Lengths and rates as emulated, beside what was asked for."""
    claim = outcome.claim
    wanted = {f.metric: f.paper for f in claim.facts}
    for hosts, curve in outcome.runs():
        found = emulated(outcome.result(curve, (), hosts))
        real = emulated(outcome.result(curve, (), "linux")) if "linux" in outcome.hosts else {}
        for metric, (value, unit) in found.items():
            yield Row(
                claim.figure,
                claim.title,
                metric,
                unit,
                wanted.get(metric),
                value,
                curve.time_scale,
                real[metric][0] if real and hosts == "simulated" else None,
                claim.name,
                hosts,
            )


def _rows_of_measures(outcome: Outcome) -> Iterator[Row]:
    from firstlight.claims.measured import rows

    return rows(outcome)


ROWS: dict[Kind, Callable[[Outcome], Iterator[Row]]] = {
    "points": _points_rows,
    "sequence": _sequence_rows,
    "fct": _fct_rows,
    "gain": _gain_rows,
    "grid": _grid_rows,
    "variants": _variants_rows,
    "validation": _validation_rows,
    "measured": _rows_of_measures,
}
