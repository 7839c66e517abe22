"""Metrics against an axis as lines, with the paper's numbers.

A panel for each metric. With ``panels`` each metric has a row of panels, one for each value of that axis or
for each time scale. There is a line for each curve, for each value of the axis ``by``, and for each platform
if the claim has several time scales. A ``label`` is that of all panels, which then share their vertical axis.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import LogLocator

from firstlight.claims.form import Curve, Plot, Value, short
from firstlight.claims.outcome import Measured, summarized
from firstlight.figures.looks import Look, axis_label, look_of, marker_of, measure_label
from firstlight.figures.style import GREY, INK, VERMILION, Figure, draw, legend_above, ramp

MANY = 8
"""An axis with more values than this has a tick at every other one."""
FAR = 1000
"""A logarithmic axis whose values lie further apart than this has its ticks at powers of ten."""
DIAMOND: dict[str, Any] = {"ls": "none", "marker": "D", "mfc": "white", "ms": 4, "mew": 1.1}


class Panel(NamedTuple):
    """The content of a panel: a metric, some platforms, some points."""

    metric: str
    views: Sequence[Measured]
    title: str = ""
    at: Mapping[str, Value] = {}


class Line(NamedTuple):
    """The content of a line: a curve on a platform at some points."""

    view: Measured
    curve: Curve
    look: dict[str, Any]
    at: Mapping[str, Value]


def lines(views: Sequence[Measured], plot: Plot) -> Figure:
    """The figure."""
    drawing = Drawing(views, plot)
    grid = drawing.grid()
    shared = bool(plot.panels or plot.label)

    def paint(canvas: Canvas) -> None:
        cells: Any = canvas.subplots(
            *(len(grid), len(grid[0])),
            squeeze=False,
            sharex=bool(plot.panels),
            sharey="row" if shared else False,
        )
        for row, panels in zip(cells, grid, strict=True):
            for axes, panel in zip(row, panels, strict=True):
                drawing.paint(axes, panel)
            for axes, panel in zip(row[:1] if shared else row, panels, strict=False):
                axes.set_ylabel(plot.label or measure_label(drawing.measures[panel.metric]))
                if not plot.by:
                    axes.set_ylim(0, 1.05 * axes.get_ylim()[1])
        for axes, panel in zip(cells[0], grid[0], strict=True):
            axes.set_title(panel.title)
        canvas.supxlabel(axis_label(drawing.axis), fontsize=9)
        if plot.by:
            handles, labels = cells[0][0].get_legend_handles_labels()
            canvas.legend(handles, labels, loc="outside right upper", title=plot.by, title_fontsize=8)
        else:
            legend_above(canvas, cells[0][0])

    return draw(plot.name, plot.caption, (7.2, 3.1 if len(grid) == 1 else 1.9 * len(grid)), paint)


class Drawing:
    """A figure of lines in the making."""

    def __init__(self, views: Sequence[Measured], plot: Plot) -> None:
        self.views = views
        self.plot = plot
        self.claim = views[0].claim
        self.measures = {m.metric: m for m in self.claim.measures}
        self.axis = next(a for a in views[0].axes() if a.name not in (plot.by, plot.panels))
        """The horizontal axis: the first one that is not used otherwise."""
        self.hosts = {view.platform.hosts for view in views}

    def values(self, axis: str) -> list[Value]:
        """The values of an axis that there are results of."""
        return list(dict.fromkeys(p[axis] for p in self.views[0].outcome.points()))

    def grid(self) -> list[list[Panel]]:
        """Rows of panels."""
        metrics, split = self.plot.metrics, self.plot.panels
        if not split:
            named = bool(self.plot.label) and len(metrics) > 1
            return [[Panel(m, self.views, self.measures[m].label if named else "") for m in metrics]]
        if split == "time_scale":
            return [[Panel(m, views, views[0].platform.scale) for views in self._by_scale()] for m in metrics]
        axis = next(a for a in self.claim.axes if a.name == split)
        values = self.values(split)
        return [[Panel(m, self.views, axis.text(v), {split: v}) for v in values] for m in metrics]

    def _by_scale(self) -> list[list[Measured]]:
        by: dict[int, list[Measured]] = {}
        for view in self.views:
            by.setdefault(view.platform.time_scale, []).append(view)
        return list(by.values())

    def paint(self, axes: Axes, panel: Panel) -> None:
        """Draw one panel."""
        if self.plot.logarithmic:
            axes.set_xscale("log")
        known = [self._line(axes, panel.metric, line) for line in self._lines(panel)]
        if not any(known):
            axes.text(0.5, 0.5, "not reached", transform=axes.transAxes, ha="center", color=GREY)
        self._paper(axes, panel)
        for label, height in self.plot.levels.items():
            axes.axhline(height, color=VERMILION, lw=0.9, ls=":", label=label)
        self._ticks(axes)

    def _ticks(self, axes: Axes) -> None:
        """Set a tick at each value; at every other one of many; at powers of ten where values lie far
        apart."""
        shown = self.values(self.axis.name)
        places = self._places(shown)
        if self.plot.logarithmic and max(places) > FAR * min(places):
            axes.xaxis.set_major_locator(LogLocator(numticks=4))
        else:
            every = slice(None, None, 1 if len(shown) <= MANY else 2)
            axes.set_xticks(places[every], [short(v) for v in shown[every]])
        axes.minorticks_off()

    def _lines(self, panel: Panel) -> Iterator[Line]:
        measure = self.measures.get(panel.metric)
        named = self.plot.curves or (measure and measure.curves) or tuple(self.views[0].curves)
        curves = [c for c in self.claim.curves if c.name in named]
        some = self.values(self.plot.by) if self.plot.by else []
        for view in panel.views:
            for curve in curves:
                if some:
                    for value, color in zip(some, ramp(len(some)), strict=True):
                        look = {"color": color, "marker": "o", "label": short(value)}
                        yield Line(view, curve, look, {**panel.at, self.plot.by: value})
                elif len(curves) == 1 and self.claim.dilated:
                    yield Line(view, curve, Look.of(view).plot, panel.at)
                else:
                    yield Line(view, curve, self._look(view, curve), panel.at)

    def _look(self, view: Measured, curve: Curve) -> dict[str, Any]:
        """The look of the curve; hollow for simulated hosts where Linux hosts are shown too."""
        look = {**look_of(view, curve), "marker": marker_of(view, curve)}
        look["label"] = curve.name or "ours"
        if len(self.hosts) > 1:
            look["label"] = f"{curve.name}, {view.platform.kind}"
            look |= {} if view.platform.hosts == "linux" else {"mfc": "white", "alpha": 0.6}
        return look

    def _line(self, axes: Axes, metric: str, line: Line) -> bool:
        """Draw a line, with bars for the 95 % interval over repetitions; return whether it has any number.
        Names on the axis have no order: their marks are not joined and stand beside each other."""
        view, curve, look, at = line
        points = [p for p in view.points() if at.items() <= p.items() and view.has(curve, p)]
        found = [(p[self.axis.name], summarized(view.values(curve, p, metric))) for p in points]
        known = [(v, e.value, e.interval or 0.0) for v, e in found if e.value is not None]
        x = self._places([v for v, _, _ in known])
        if self._named:
            aside = list(view.curves).index(curve.name) - (len(view.curves) - 1) / 2
            x, look = [place + 0.12 * aside for place in x], {**look, "ls": "none"}
        y, bars = [mean for _, mean, _ in known], [interval for _, _, interval in known]
        if any(bars):
            axes.errorbar(x, y, yerr=bars, capsize=2, elinewidth=1.0, **look)
        else:
            axes.plot(x, y, **look)
        return bool(known)

    def _paper(self, axes: Axes, panel: Panel) -> None:
        """Draw the paper's numbers: rings on the curves if the paper has them by curve, else a line of their
        own. Where panels are time scales, they stand in that of the largest, the testbed's."""
        if "linux" not in self.hosts:
            self._before(axes, panel)
        frame, view = self.claim.paper, panel.views[0]
        if panel.metric not in frame or view.platform.time_scale != max(self.claim.time_scales):
            return
        if "curve" in frame:
            for line in self._lines(panel):
                points = [p for p in view.points() if panel.at.items() <= p.items()]
                stated = [(p[self.axis.name], view.paper(line.curve, p, panel.metric)) for p in points]
                rings = {v: number for v, number in stated if number is not None}
                self._marks(axes, rings, f"paper, {line.curve.name}", mec=line.look["color"], ls="none")
            return
        for value in self.values(self.plot.by) if self.plot.by else [None]:
            wanted = {**panel.at, **({} if value is None else {self.plot.by: value})}
            part = frame
            for name, number in wanted.items():
                part = part[part[name] == number]
            found = dict(zip(part[self.axis.name], part[panel.metric], strict=True))
            label = "paper" if value is None else f"paper, {short(value)}"
            self._marks(axes, found, label, color=INK, mec=INK, ls="--" if value is None else "none")

    def _before(self, axes: Axes, panel: Panel) -> None:
        label: str | None = "real Linux, same scale"
        for view, curve, look, _ in self._lines(panel):
            stated = [
                (p[self.axis.name], view.expected("linux", curve, p, panel.metric)) for p in view.points()
            ]
            found = {v: number for v, number in stated if number is not None}
            if found:
                look = {**DIAMOND, "color": look["color"], "label": label}
                axes.plot(self._places(found), list(found.values()), **look)
                label = None

    def _marks(self, axes: Axes, found: Mapping[Value, float], label: str, **look: Any) -> None:
        if found:
            marker = "o" if len(found) <= 2 * MANY else ""
            places, numbers = self._places(found), list(found.values())
            axes.plot(places, numbers, marker=marker, ms=8, mfc="none", mew=1.2, lw=1.0, label=label, **look)

    @property
    def _named(self) -> bool:
        return any(isinstance(v, str) for v in self.axis.values)

    def _places(self, values: Iterable[Value]) -> list[float]:
        """Positions of values on the axis; names stand one after another."""
        return [float(self.axis.values.index(v)) if isinstance(v, str) else float(v) for v in values]
