"""The curves of a drawn figure as data, from which a page draws a chart with zoom and values.

They are read from matplotlib's own axes after drawing, so that a page cannot show other numbers than the
figure. Lines, steps, columns, bars, error bars, marked levels and shaded spans are known. A figure with
anything else (a heat map, a chart of circuits) has no data and remains a drawing.
"""

import base64
import json
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.collections import LineCollection
from matplotlib.colors import same_color, to_hex
from matplotlib.container import BarContainer, ErrorbarContainer
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator

MOST_POINTS = 4000
"""Points of a curve at most: a screen has no more columns."""
Numbers = npt.NDArray[np.float64]
DASHES: dict[object, list[float]] = {"-": [], "--": [3.7, 1.6], "-.": [6.4, 1.6, 1, 1.6], ":": [1, 1.65]}
"""Lengths of strokes and gaps in line widths, as matplotlib has them."""


class Unknown(Exception):
    """Something is drawn that cannot be written as curves."""


def thinned(x: Numbers, y: Numbers) -> tuple[Numbers, Numbers]:
    """A curve with at most :data:`MOST_POINTS` points. Of a longer one, cut into equal parts, each part keeps
    its first, least, greatest and last point: no peak is lost, and each point is one of the curve."""
    if len(x) <= MOST_POINTS:
        return x, y
    parts = np.array_split(np.arange(len(x)), MOST_POINTS // 4)
    kept = np.unique([i for p in parts for i in (p[0], p[y[p].argmin()], p[y[p].argmax()], p[-1])])
    return x[kept], y[kept]


class Arrays:
    """The numbers of a figure: arrays of 32-bit floats one after another, equal ones once."""

    def __init__(self) -> None:
        self._places: dict[bytes, tuple[int, int]] = {}
        self._length = 0

    def place(self, values: npt.ArrayLike) -> tuple[int, int]:
        """Where ``values`` stand: the index of the first, and how many they are."""
        numbers = np.asarray(values, dtype="<f4").tobytes()
        if numbers not in self._places:
            self._places[numbers] = self._length, len(numbers) // 4
            self._length += len(numbers) // 4
        return self._places[numbers]

    def text(self) -> str:
        """All of them, packed: first the first bytes of all numbers, then the second ones, which are more
        alike."""
        numbers = np.frombuffer(b"".join(self._places), dtype="u1").reshape(-1, 4)
        return packed(numbers.T.tobytes())


def packed(content: bytes) -> str:
    """Bytes, compressed by zlib, in base64."""
    return base64.b64encode(zlib.compress(content, 9)).decode()


def panels(canvas: Canvas, ink: str) -> str:
    """The panels of a drawn figure as JSON; empty if the figure has what is not known here. Lines of the
    colour ``ink`` get the colour ``""``: the page's own."""
    arrays = Arrays()
    try:
        shown = [_Panel(axes, arrays, ink).as_dict() for axes in canvas.axes if axes.get_visible()]
    except Unknown:
        return ""
    _name_alike([curve for panel in shown for curve in panel["curves"]])
    columns = 1 + max(panel["column"] for panel in shown)
    place: Any = canvas.axes[0].get_subplotspec()
    heights: list[float] = place.get_gridspec().get_height_ratios()
    width, height = canvas.get_size_inches()
    figure = {
        "ratio": round(height / width, 4),
        "columns": columns,
        "heights": [round(h / sum(heights), 4) for h in heights],
        "legend": next((x.get_title().get_text() for x in canvas.legends), "").replace("\n", " "),
        "panels": shown,
        "numbers": arrays.text(),
    }
    return json.dumps(figure, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


class _Panel:
    """One pair of axes."""

    def __init__(self, axes: Axes, arrays: Arrays, ink: str) -> None:
        self.axes, self.arrays, self.ink = axes, arrays, ink
        self.curves: list[dict[str, Any]] = []
        self.spans: list[dict[str, Any]] = []

    def as_dict(self) -> dict[str, Any]:
        axes, canvas = self.axes, self.axes.figure
        place = axes.get_subplotspec()
        if place is None or canvas is not axes.get_figure(root=True) or axes.images:
            raise Unknown
        self._read()
        shared = axes.get_shared_x_axes().get_siblings(axes)
        below = canvas.get_supxlabel()
        named = axes.get_xlabel() or (below if place.is_last_row() else "")
        what = next((one.get_xlabel() for one in [axes, *shared] if one.get_xlabel()), below)
        return {
            "row": place.rowspan.start,
            "column": place.colspan.start,
            "title": axes.get_title(),
            "group": min(canvas.axes.index(one) for one in shared),
            "x": _axis(axes.xaxis, axes.get_xlim(), axes.get_xscale(), named, what),
            "y": _axis(axes.yaxis, axes.get_ylim(), axes.get_yscale(), axes.get_ylabel(), axes.get_ylabel()),
            "curves": self.curves,
            "spans": self.spans,
            "note": next((t.get_text() for t in axes.texts if t.get_transform() == axes.transAxes), ""),
        }

    def _read(self) -> None:
        axes = self.axes
        known: set[object] = set()
        for container in axes.containers:
            if isinstance(container, BarContainer):
                known.update(container.patches)
                self._bars(container)
        for container in axes.containers:
            if isinstance(container, ErrorbarContainer):
                line, caps, reaches = container.lines
                known.update([line, *caps, *reaches])
                self._errors(line, reaches, str(container.get_label()))
        for line in axes.lines:
            if line not in known:
                self._line(line)
        for patch in axes.patches:
            if patch not in known:
                self._span(patch)
        if any(one not in known for one in axes.collections):
            raise Unknown

    def _line(self, line: Line2D, label: str = "", **more: Any) -> None:
        axes, style = self.axes, line.get_linestyle()
        x, y = (np.asarray(v, dtype=float) for v in line.get_data(orig=True))
        across = line.get_transform() == axes.get_yaxis_transform(which="grid")
        if across or line.get_transform() == axes.get_xaxis_transform(which="grid"):
            x, y = (x[:0], y[:1]) if across else (x[:1], y[:0])  # a level: one coordinate
        elif line.get_transform() != axes.transData or line.get_drawstyle() not in ("default", "steps-post"):
            raise Unknown
        else:
            known = np.isfinite(x) & np.isfinite(y)
            x, y = x[known], y[known]
            if "low" not in more:
                x, y = thinned(x, y)
        marker = str(line.get_marker())
        self.curves.append(
            {
                "label": _label(label or str(line.get_label())),
                "color": self._color(line.get_color()),
                "dash": DASHES.get(style),
                "width": line.get_linewidth(),
                "alpha": line.get_alpha() or 1,
                "marker": marker if marker in "os^v<>D" else "",
                "size": line.get_markersize(),
                "filled": not any(
                    same_color(line.get_markerfacecolor(), hollow) for hollow in ("none", "white")
                ),
                "edge": self._color(line.get_markeredgecolor()),
                "step": line.get_drawstyle() == "steps-post",
                "x": self.arrays.place(x),
                "y": self.arrays.place(y),
                **more,
            }
        )

    def _errors(self, line: Line2D | None, reaches: Sequence[LineCollection], label: str) -> None:
        """A line with its error bars, or one of them alone."""
        if not reaches:
            if line is not None:
                self._line(line, label)
            return
        upright = reaches[0].get_segments()
        along = int(all(len(s) == 0 or s[0][0] == s[-1][0] for s in upright))  # 1: along y
        ends = [(s[0][along], s[-1][along]) for s in upright if len(s)]
        low, high = (self.arrays.place([e[i] for e in ends]) for i in (0, 1))
        if line is None:
            middle = Line2D(*np.transpose([np.mean(s, axis=0) for s in upright if len(s)]), ls="none")
            middle.set_transform(self.axes.transData)
            middle.set_color(to_hex(np.asarray(reaches[0].get_color())[0]))
            line = middle
        elif np.size(line.get_xdata()) != len(ends):
            raise Unknown
        self._line(line, label, low=low, high=high, along="xy"[along])

    def _bars(self, bars: BarContainer) -> None:
        """Columns, or bars to the right; those of one colour are a curve."""
        lies = bars.orientation == "horizontal"
        for colors, some in _by_color(bars.patches):
            boxes = np.array([(*b.get_xy(), b.get_width(), b.get_height()) for b in some], dtype=float)
            boxes = boxes[np.isfinite(boxes).all(axis=1)]
            left, bottom, width, height = boxes.T
            filled = colors[0] != "none"
            base = left if lies else bottom
            stacked = {"base": self.arrays.place(base)} if np.any(base != 0) else {}
            self.curves.append(
                stacked
                | {
                    "label": _label(str(bars.get_label())),
                    "color": self._color(colors[0] if filled else colors[1]),
                    "filled": filled,
                    "bar": "x" if lies else "y",
                    "thick": float(np.median(height if lies else width)) if len(boxes) else 0.0,
                    "x": self.arrays.place(left + width if lies else left + width / 2),
                    "y": self.arrays.place(bottom + height / 2 if lies else bottom + height),
                }
            )

    def _span(self, patch: Patch) -> None:
        """A shaded span of x or of y, from edge to edge."""
        upright = patch.get_transform().contains_branch(self.axes.get_xaxis_transform(which="grid"))
        corners = patch.get_path().transformed(patch.get_patch_transform()).vertices
        x, y = np.asarray(corners).T
        across = set(np.round(y, 9)) <= {0.0, 1.0}
        down = set(np.round(x, 9)) <= {0.0, 1.0}
        if not (across or down) or patch.get_hatch():
            raise Unknown
        along = x if upright and across else y
        self.spans.append(
            {
                "axis": "x" if along is x else "y",
                "from": float(along.min()),
                "to": float(along.max()),
                "color": self._color(patch.get_facecolor()),
                "alpha": patch.get_alpha() or 1,
                "label": _label(str(patch.get_label())),
            }
        )

    def _color(self, color: Any) -> str:
        return "" if same_color(color, self.ink) else to_hex(color)


def _name_alike(curves: Sequence[dict[str, Any]]) -> None:
    """Give curves without a label that of another panel's curve of their look: one legend is for all."""
    looks = [(c["color"], c.get("dash"), c.get("marker"), c.get("bar")) for c in curves]
    for curve, look in zip(curves, looks, strict=True):
        named = (
            other["label"] for other, its in zip(curves, looks, strict=True) if its == look and other["label"]
        )
        curve["label"] = curve["label"] or next(named, "")


def _by_color(patches: Sequence[Any]) -> Iterator[tuple[tuple[str, str], list[Any]]]:
    found: dict[tuple[str, str], list[Any]] = {}
    for one in patches:
        face = one.get_facecolor()
        colors = "none" if face[3] == 0 else to_hex(face), to_hex(one.get_edgecolor())
        found.setdefault(colors, []).append(one)
    yield from found.items()


def _label(text: str) -> str:
    """A label of the legend; none where matplotlib made it up."""
    return "" if text.startswith("_") else text.replace("\n", " ")


def _axis(axis: Axis, limits: tuple[float, float], scale: str, label: str, what: str) -> dict[str, Any]:
    """An axis: ``label`` stands at it; ``what`` it shows is also that of a shared axis without a label."""
    if scale not in ("linear", "log"):
        raise Unknown
    low, high = (float(v) for v in limits)
    return {
        "label": label.replace("\n", " "),
        "what": what.replace("\n", " "),
        "log": scale == "log",
        "from": low,
        "to": high,
        "names": _names(axis),
    }


def _names(axis: Axis) -> list[tuple[float, str]]:
    """The places on an axis that have names; none where the marks are numbers."""
    if not isinstance(axis.get_major_locator(), FixedLocator):
        return []
    places = [float(at) for at in axis.get_ticklocs()]
    marks = list(zip(places, axis.get_major_formatter().format_ticks(places), strict=True))
    return [] if all(_is_number(text, at) for at, text in marks) else marks


def _is_number(text: str, at: float) -> bool:
    try:
        return float(text) == at
    except ValueError:
        return False
