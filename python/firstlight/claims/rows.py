"""The rows of a reproduction: the paper's number, ours, the difference."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from firstlight.claims.claim import Platform
from firstlight.claims.form import Curve, Measure
from firstlight.claims.outcome import Estimate, Measured, Outcome, Point
from firstlight.claims.quantity import compared, quantities
from firstlight.claims.statement import StatedCheck
from firstlight.numbers import minus, rounded
from firstlight.runs.run import Hosts

WHOLE = "whole run"
"""The point of a claim without axes and curves."""


@dataclass(frozen=True)
class Row:
    """One number of a paper beside ours.

    ``paper`` is always what the paper's authors published (``None``: they gave no number) and ``difference``
    is ours minus it. ``ours`` was measured on ``hosts``; for simulated ones ``linux`` is what a Linux stack
    gave at the same time scale: Linux hosts in the same reproduction, else the claim's ``linux.csv``.
    """

    figure: str
    point: str
    metric: str
    unit: str
    paper: float | None
    ours: float | None
    time_scale: int
    linux: float | None = None
    hosts: Hosts = "simulated"
    curve: str = ""
    label: str = ""
    """The metric in words."""
    interval: float | None = None
    """Half of the 95 % interval of ``ours``, ``None`` where it is not known."""
    alone: bool = False
    """Whether the interval is that of a single run, by its own flows."""
    detail: bool = False
    """Whether the report and JSON alone have the row."""

    @property
    def platform(self) -> Platform:
        """The hosts that ``ours`` was measured on."""
        return Platform(self.hosts, self.time_scale)

    @property
    def difference(self) -> float | None:
        """Ours minus the paper's."""
        return minus(self.ours, self.paper)

    @property
    def linux_difference(self) -> float | None:
        """Ours minus the Linux stack's."""
        return minus(self.ours, self.linux)

    @property
    def percent(self) -> float | None:
        """The difference in percent of the paper's number."""
        return 100 * self.difference / abs(self.paper) if self.difference is not None and self.paper else None

    def as_dict(self) -> dict[str, Any]:
        """The row as ``--json`` prints it."""
        return {
            "figure": self.figure,
            "point": self.point,
            "metric": self.metric,
            "paper": self.paper,
            "ours": rounded(self.ours),
            "difference": rounded(self.difference),
            "unit": self.unit,
            "time_scale": self.time_scale,
            "hosts": self.hosts,
            "linux": self.linux,
            "linux_difference": rounded(self.linux_difference),
            "curve": self.curve,
            "interval": rounded(self.interval),
        }


def rows(outcome: Outcome) -> Iterator[Row]:
    """Every measure at every point of every curve on each platform, then the numbers of the text."""
    claim, views = outcome.claim, outcome.views
    for measure in claim.measures:
        curves = [c for c in claim.curves if c.name in (measure.curves or [c.name])]
        for point in outcome.points():
            yield from (_row(v, measure, c, point) for v in views for c in curves if v.has(c, point))
    known = {m.metric: m for m in claim.measures}
    for check in claim.checks:
        at_points = check.metric in known and check.is_plain and check.over == "each"
        if check.paper is not None and not at_points:
            yield from (row for view in views for row in _stated(view, check, known.get(check.metric)))


def _row(view: Measured, measure: Measure, curve: Curve, point: Point) -> Row:
    """A measure at a point."""
    linux = None
    if view.platform.hosts == "simulated":
        linux = view.linux.estimate(curve, point, measure.metric).value if view.linux else None
        linux = view.expected("linux", curve, point, measure.metric) if linux is None else linux
    return _filled(
        view,
        view.estimate(curve, point, measure.metric),
        figure=view.claim.of_paper(measure.figure),
        point=_words(view.name(point), _suffix(view), curve.name) or WHOLE,
        metric=measure.metric,
        unit=measure.unit,
        paper=view.paper(curve, point, measure.metric),
        linux=linux,
        curve=curve.name,
        label=measure.label,
        detail=measure.detail,
    )


def _stated(view: Measured, check: StatedCheck, measure: Measure | None) -> Iterator[Row]:
    """A number of the text that is no measure at a point; none where these hosts have no runs of it."""
    claim, hosts = view.claim, view.platform.hosts
    whole = check.over == "each" or claim.is_whole(hosts)
    real = {q.place: q.estimate.value for q in quantities(view.linux, check)} if view.linux and whole else {}
    label = measure.label if measure else check.metric
    names = " / ".join(compared(claim, check, check.ratio))
    for place, ours, paper in quantities(view, check):
        yield _filled(
            view,
            ours,
            figure=claim.of_paper(check.figure or (measure.figure if measure else claim.figure)),
            point=_words(place, names, _suffix(view)),
            metric=check.metric,
            unit="x" if check.ratio else measure.unit if measure else "",
            paper=paper if whole else None,
            linux=real.get(place),
            curve=check.curves[0] if check.curves else "",
            label=f"{label}, ratio" if check.ratio else label,
        )


def _filled(view: Measured, found: Estimate, **fields: Any) -> Row:
    hosts, time_scale = view.platform
    ours, interval, alone = found
    return Row(ours=ours, interval=interval, alone=alone, hosts=hosts, time_scale=time_scale, **fields)


def _suffix(view: Measured) -> str:
    """``Linux`` where rows of Linux hosts have no column of their own."""
    return "Linux" if view.platform.hosts == "linux" and not view.claim.dilated else ""


def _words(*texts: str) -> str:
    return ", ".join(text for text in texts if text)
