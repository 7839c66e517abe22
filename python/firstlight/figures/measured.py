"""Figures of claims of the kind ``measured``: metrics against an axis, distributions, flows over time."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D

from firstlight.claims.claim import Axis, Curve, Hosts, Value, short
from firstlight.claims.form import Drawn, Measure
from firstlight.claims.measured import Measured, Point, summarized
from firstlight.claims.measures import throughput
from firstlight.claims.verdict import Outcome
from firstlight.figures import bars, chain, fct, heat_map, ladder, overload, ratios
from firstlight.figures.style import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    SKY,
    VERMILION,
    Figure,
    draw,
    legend_above,
    ramp,
)

COLORS = (BLUE, VERMILION, GREEN, ORANGE, PURPLE, SKY, GREY)
LINES = ("-", "--", "-.", ":", "-", "--", "-.")
MARKERS = "os^Dv<>"


def figures(outcome: Outcome) -> list[Figure]:
    """The figures that the claim asks for, one for each kind of hosts that was run."""
    painters = {
        "lines": _lines,
        "cdf": _cdf,
        "throughput": _throughput,
        "chain_deviation": chain.deviations,
        "chain_gaps": chain.gaps,
        "chain_rtts": chain.rtts,
        "ladder": ladder.ladder,
        "fct_groups": fct.by_size,
        "heat_map": heat_map.heat_map,
        "bars": bars.bars,
        "overload": overload.overload,
        "ratios": ratios.ratios,
    }
    return [
        painters[drawn.kind](Measured(outcome, hosts), _on(hosts, drawn))
        for drawn in outcome.claim.figures
        for hosts in outcome.hosts
    ]


def _on(hosts: Hosts, drawn: Drawn) -> Drawn:
    if hosts == "simulated":
        return drawn
    return replace(drawn, name=f"{drawn.name}-linux", caption=f"Linux hosts. {drawn.caption}")


def _look(measured: Measured, curve: Curve) -> dict[str, Any]:
    i = list(measured.curves).index(curve.name) % len(COLORS)
    return {"color": COLORS[i], "ls": LINES[i], "label": curve.name}


def _lines(measured: Measured, drawn: Drawn) -> Figure:
    """A panel for each metric against the first axis, bars for the 95 % interval, rings for the paper's
    numbers. Names on the axis have no order: nothing joins their marks, which stand beside each other."""
    axis, others = measured.axes()[0], measured.axes()[1:]
    assert not others, "lines have one axis"
    measures = [_measure(measured, name) for name in drawn.metrics]

    def paint(canvas: Canvas) -> None:
        panels: Sequence[Axes] = np.ravel(canvas.subplots(1, len(measures), squeeze=False)).tolist()
        for axes, measure in zip(panels, measures, strict=True):
            for i, curve in enumerate(measured.claim.curves):
                if curve.name in (measure.curves or [curve.name]):
                    _line(measured, axes, axis, measure, curve, MARKERS[i % len(MARKERS)])
            axes.set_ylabel(_words(measure))
            axes.set_ylim(0, 1.05 * axes.get_ylim()[1])
        unit = "" if axis.unit.lower() in ("", axis.label.lower()) else f" ({axis.unit})"
        canvas.supxlabel(f"{axis.label}{unit}", fontsize=9)
        legend_above(canvas, panels[0])

    return draw(drawn.name, _caption(measured, drawn), (7.2, 3.1), paint)


def _line(measured: Measured, axes: Axes, axis: Axis, measure: Measure, curve: Curve, marker: str) -> None:
    points = [p for p in measured.points() if measured.has(curve, p)]
    found = [(p, *summarized(measured.values(curve, p, measure.metric))) for p in points]
    known = [(p[axis.name], mean, bar or 0.0) for p, mean, bar in found if mean is not None]
    named = any(isinstance(v, str) for v in axis.values)
    aside = 0.12 * (list(measured.curves).index(curve.name) - (len(measured.curves) - 1) / 2)
    axes.errorbar(
        [x + named * aside for x in _places(axis, [v for v, _, _ in known])],
        [mean for _, mean, _ in known],
        yerr=[bar for _, _, bar in known],
        marker=marker,
        capsize=2,
        elinewidth=1.0,
        **_look(measured, curve) | ({"ls": "none"} if named else {}),
    )
    papers = [(p[axis.name], measured.paper(curve, p, measure.metric)) for p in points]
    if rings := [(v, number) for v, number in papers if number is not None]:
        at_x = _places(axis, [v for v, _ in rings])
        color = _look(measured, curve)["color"]
        axes.plot(
            at_x,
            [n for _, n in rings],
            "o",
            ms=9,
            mfc="none",
            mec=color,
            mew=1.3,
            label=f"paper, {curve.name}",
        )
    shown = [v for v in axis.values if any(p[axis.name] == v for p in points)]
    axes.set_xticks(_places(axis, shown), [short(v) for v in shown])
    if not known:
        axes.text(0.5, 0.5, "not reached", transform=axes.transAxes, ha="center", color=GREY)


def _places(axis: Axis, values: Sequence[Value]) -> list[float]:
    return [float(axis.values.index(v)) if isinstance(v, str) else float(v) for v in values]


def _cdf(measured: Measured, drawn: Drawn) -> Figure:
    """A panel for each point, a step for each value; repetitions pooled. Where some have no value, as flows
    that are not complete, the line ends below 100 %."""
    points = measured.points()

    def paint(canvas: Canvas) -> None:
        panels: Sequence[Axes] = np.ravel(
            canvas.subplots(1, len(points), sharey=True, squeeze=False)
        ).tolist()
        lines: dict[str, Line2D] = {}
        for axes, point in zip(panels, points, strict=True):
            for curve in (c for c in measured.claim.curves if measured.has(c, point)):
                values, shares = distribution(measured, curve, point, drawn)
                [line] = axes.step(values, shares, where="post", **_look(measured, curve))
                lines.setdefault(curve.name, line)
            axes.set_title(measured.name(point))
            if drawn.logarithmic:
                axes.set_xscale("log")
                axes.xaxis.set_major_formatter("{x:g}")
            else:
                axes.set_xlim(left=0)
            axes.set_ylim(0, 101)
        panels[0].set_ylabel("Share (%)")
        canvas.supxlabel(drawn.label, fontsize=9)
        canvas.legend(list(lines.values()), list(lines), ncols=5, loc="outside upper left")

    return draw(drawn.name, _caption(measured, drawn), (7.2, 3.0), paint)


def distribution(
    measured: Measured, curve: Curve, point: Point, drawn: Drawn
) -> tuple[list[float], list[float]]:
    """Values, growing, and how many percent do not exceed each; the first one twice, from zero up."""
    values, weights = [], []
    for result in measured.results(curve, point):
        frame = result.table(drawn.table)
        frame = frame[frame["name"] == frame["name"].iloc[0]] if "name" in frame else frame
        for column, wanted in drawn.where.items():
            frame = frame[frame[column] == wanted]
        values.append(frame[drawn.column].to_numpy(dtype=float) / drawn.divide)
        weights.append(frame[drawn.weight].to_numpy(dtype=float) if drawn.weight else np.ones(len(frame)))
    every, counts = np.concatenate(values), np.concatenate(weights)
    order = np.argsort(every, kind="stable")[: np.isfinite(every).sum()]
    share = 100 * np.cumsum(counts[order]) / counts.sum()
    return every[[*order[:1], *order]].tolist(), [*[0.0][: len(order)], *share.tolist()]


def _throughput(measured: Measured, drawn: Drawn) -> Figure:
    """A panel for each curve, a line for each flow, in the first repetition at the first point."""
    point = next(p for p in measured.points() if drawn.at.items() <= p.items())
    curves = [c for c in measured.claim.curves if measured.has(c, point)]

    def paint(canvas: Canvas) -> None:
        panels = np.ravel(canvas.subplots(len(curves), 1, sharex=True, sharey=True, squeeze=False)).tolist()
        for axes, curve in zip(panels, curves, strict=True):
            flows = throughput(measured.results(curve, point)[0])
            for i, (number, color) in enumerate(zip(flows, ramp(flows.shape[1]), strict=True), 1):
                label = f"flow {i}"
                axes.plot(flows.index / 1e6, flows[number], color=color, lw=1.0, label=label)
            axes.set_title(curve.name)
            axes.set_ylabel("Throughput\n(Gb/s)")
            axes.set_ylim(bottom=0)
            axes.margins(x=0.01)
        panels[-1].set_xlabel("Time (s)")
        legend_above(canvas, panels[0])

    return draw(drawn.name, _caption(measured, drawn), (7.2, 0.7 + 1.6 * len(curves)), paint)


def _measure(measured: Measured, metric: str) -> Measure:
    return next(m for m in measured.claim.measures if m.metric == metric)


def _words(measure: Measure) -> str:
    label = measure.label[0].upper() + measure.label[1:]
    said = not measure.unit or measure.unit in measure.label.lower().split()
    return label if said else f"{label} ({measure.unit})"


def _caption(measured: Measured, drawn: Drawn) -> str:
    return f"{measured.claim.display}: {drawn.caption}"
