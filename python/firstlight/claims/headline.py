"""The headline ratios of Etalon's abstract, from three claims: static VOQs, resized VOQs, reTCP."""

from collections.abc import Iterator, Mapping, Sequence

from firstlight.claims.claim import Platform
from firstlight.claims.form import Curve
from firstlight.claims.outcome import Measured, Outcome, Point
from firstlight.claims.rows import Row
from firstlight.runs.result import UTILIZATION

POINTS = {"static": 16, "dynamic": 1800, "retcp": 150}
"""The point of each claim that the abstract compares, by ``options.headline``."""
GAINS = (("dynamic", "dynamic 1800 us"), ("retcp", "reTCP 150 us"))
RATIOS = (
    ("utilization ratio", UTILIZATION, UTILIZATION),
    ("p99 by static p99 (like for like)", "p99_all_us", "p99_all_us"),
    ("p99 by static median (as the paper)", "p99_all_us", "p50_all_us"),
)
"""Name, metric above, metric of static VOQs below. The paper divides a p99 by a median."""
Pair = tuple[float | None, float | None]


def headline(outcomes: Sequence[Outcome]) -> list[Row]:
    """The ratios on each platform that all three claims were run on; none without the three claims."""
    roles = {o.claim.options.headline: o for o in outcomes if o.claim.options.headline in POINTS}
    if len(roles) < len(POINTS):
        return []
    return [row for platform in roles["static"].platforms for row in _on(roles, platform)]


def _on(roles: Mapping[str, Outcome], platform: Platform) -> Iterator[Row]:
    views = {role: Measured(outcome, platform) for role, outcome in roles.items()}
    if any(not view.has(*_place(view, role)) for role, view in views.items()):
        return
    for role, name in GAINS:
        for metric, above, below in RATIOS:
            over, under = _numbers(views[role], role, above), _numbers(views["static"], "static", below)
            paper, ours = (a / b if a is not None and b else None for a, b in zip(over, under, strict=True))
            point = f"static 16 -> {name}"
            hosts, time_scale = platform
            yield Row("headline", point, metric, "x", paper, ours, time_scale, hosts=hosts, label=metric)


def _numbers(view: Measured, role: str, metric: str) -> Pair:
    """The paper's number and ours."""
    place = _place(view, role)
    return view.paper(*place, metric), view.estimate(*place, metric).value


def _place(view: Measured, role: str) -> tuple[Curve, Point]:
    return view.claim.curves[0], {view.axes()[0].name: POINTS[role]}
