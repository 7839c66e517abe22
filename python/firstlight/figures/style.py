"""The look of all figures: on paper, on a light screen and on a dark one.

The colours are Okabe and Ito's, which colour-blind readers can distinguish; the paper's and our marks also
differ in marker and dash. In reports, figures are transparent SVG whose ink has the page's text colour.
"""

import hashlib
import io
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.category import StrCategoryFormatter
from matplotlib.figure import Figure as Canvas
from matplotlib.text import Text
from matplotlib.ticker import FixedFormatter

from firstlight.figures.panels import panels
from firstlight.runs.staging import replace_bytes, replace_text, unwritable

BLUE, VERMILION, GREEN, PURPLE, SKY, ORANGE = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00"
INK = "#1c2321"
"""Axes, text and the paper's marks; becomes the page's own text colour in the report."""
GREY = "#8a8f98"
DAY_SHADE: dict[str, Any] = {"color": SKY, "alpha": 0.22, "linewidth": 0}

PNG_DPI = 160

_RC: Any = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial"],
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.titleweight": "bold",
    "axes.labelsize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "lines.linewidth": 1.6,
    "lines.markersize": 4.5,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.6,
    "svg.fonttype": "none",
    "path.simplify_threshold": 0.35,
    "axes.grid": True,
    **dict.fromkeys(
        (
            "text.color",
            "axes.edgecolor",
            "axes.labelcolor",
            "xtick.color",
            "ytick.color",
            "grid.color",
            "axes.titlecolor",
        ),
        INK,
    ),
}


@dataclass(frozen=True)
class Figure:
    """One drawn figure: its name (``fig08a``), a caption, and the drawing in three forms."""

    name: str
    caption: str
    svg: str
    png: bytes
    inline: str
    """SVG without prolog or addresses, for a page; its ink is ``currentColor``."""
    panels: str = ""
    """The curves as JSON (:mod:`firstlight.figures.panels`); empty if it is only a drawing."""

    def save(self, folder: Path) -> None:
        """Write ``name.svg`` and ``name.png``; raises :class:`ResultError` when they cannot be written."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as e:
            raise unwritable(folder, e) from None
        replace_text(folder / f"{self.name}.svg", self.svg)
        replace_bytes(folder / f"{self.name}.png", self.png)


@contextmanager
def style(name: str) -> Iterator[None]:
    """Matplotlib settings of all figures. Ids in the SVG are hashed from ``name``, so that they repeat and
    differ between figures."""
    with plt.rc_context({**_RC, "svg.hashsalt": name}):
        yield


def draw(name: str, caption: str, size: tuple[float, float], paint: Callable[[Canvas], None]) -> Figure:
    """Draw one figure: ``paint`` fills an empty canvas of ``size`` inches."""
    with style(name):
        canvas = Canvas(figsize=size, layout="constrained")
        paint(canvas)
        _take_literally(canvas)
        canvas.draw_without_rendering()
        canvas.set_layout_engine("none")  # both forms have one layout, found once
        png, svg = io.BytesIO(), io.StringIO()
        canvas.dpi = PNG_DPI
        on_pixels: Any = FigureCanvasAgg(canvas)  # savefig would draw twice for each form
        on_pixels.print_png(png, metadata={"Software": None})
        for patch in (canvas.patch, *(axes.patch for axes in canvas.axes)):
            patch.set_facecolor("none")
        on_paper: Any = FigureCanvasSVG(canvas)
        on_paper.print_svg(svg, metadata={"Date": None})
        curves = panels(canvas, INK)
    text = svg.getvalue()
    return Figure(name, caption, _on_white(text), png.getvalue(), _inline(text, caption), curves)


def _take_literally(canvas: Canvas) -> None:
    """Draw names as they are: a dollar sign begins no formula, except in labels that matplotlib computes."""
    fixed = (FixedFormatter, StrCategoryFormatter)
    computed = {
        label
        for axes in canvas.axes
        for axis in (axes.xaxis, axes.yaxis)
        if not isinstance(axis.get_major_formatter(), fixed)
        for label in axis.get_ticklabels(which="both")
    }
    for text in canvas.findobj(Text):
        if isinstance(text, Text) and text not in computed:
            text.set_parse_math(False)


def _on_white(svg: str) -> str:
    end = svg.index(">", svg.index("<svg")) + 1
    return f'{svg[:end]}\n <rect width="100%" height="100%" fill="white"/>{svg[end:]}'


def _inline(svg: str, caption: str) -> str:
    body = svg[svg.index("<svg") :]
    body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
    body = re.sub(r'\s+xmlns(:\w+)?="[^"]*"', "", body)
    body = re.sub(r'width="[\d.]+pt" height="[\d.]+pt"', "", body, count=1)
    label = caption.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
    body = body.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1)
    return _short(re.sub(INK, "currentColor", body, flags=re.IGNORECASE))


def _short(svg: str) -> str:
    """The drawing in a third of its bytes: no groups without a look, a tenth of a point as the finest
    step, paths in steps from point to point, looks named by a letter."""
    svg = re.sub(r'(<g) id="[^"]*"', r"\1", svg)
    svg = re.sub(r"font-family: [^;\"]*; ", "", svg)  # the page's style has it
    svg = re.sub(r' transform="rotate\(-0 [^)]*\)"', "", svg)
    svg = re.sub(r' d="([^"]*)"', lambda path: f' d="{_steps(path[1])}"', svg)
    svg = svg.replace("xlink:href=", "href=").replace(' type="text/css"', "").replace(' version="1.1"', "")
    svg = re.sub(r">\s+<", "><", svg)
    svg = _without_groups(_with_marks(svg))
    svg = re.sub(r'(?<= )(x|y|width|height)="(-?\d+\.\d+)"', lambda at: f'{at[1]}="{_tenth(at[2])}"', svg)
    svg = re.sub(r"\d+\.\d{3,}", lambda number: f"{float(number[0]):.2f}", svg)
    return _with_looks(svg)


def _with_marks(svg: str) -> str:
    """Marks on axes, of which each is one line, as lines: that is shorter than naming a line elsewhere."""
    line = r'<path id="(\w+)" d="M0 0(l[^"]*)" (style="[^"]*")/>'
    marks = {name: (step, look) for name, step, look in re.findall(line, svg)}

    def drawn(use: re.Match[str]) -> str:
        name, x, y = use.groups()
        step, look = marks[name]
        return f'<path d="M{_tenth(x)} {_tenth(y)}{step}" {look}/>'

    if marks:
        names = "|".join(marks)
        svg = re.sub(rf'<use href="#({names})" x="([^"]*)" y="([^"]*)" style="[^"]*"/>', drawn, svg)
        svg = re.sub(line, lambda path: path[0] if f'"#{path[1]}"' in svg else "", svg)
    return svg.replace("<defs></defs>", "").replace("<defs/>", "")


def _without_groups(svg: str) -> str:
    """A drawing without groups that have no attributes."""
    kept: list[bool] = []

    def group(tag: re.Match[str]) -> str:
        if tag[0] == "</g>":
            return "</g>" if kept.pop() else ""
        kept.append(tag[0] != "<g>")
        return tag[0] if kept[-1] else ""

    return re.sub(r"<g(?: [^>]*[^/>])?>|</g>", group, svg.replace("<g/>", ""))


def _with_looks(svg: str) -> str:
    """A drawing whose styles, with what they are cut to, have short names, which hold in it alone."""
    own = "s" + hashlib.md5(svg.encode()).hexdigest()[:8]
    looks: dict[str, str] = {}

    def named(style: re.Match[str]) -> str:
        cut, text = style.groups()
        text = ";".join([*([f"clip-path:{cut}"] if cut else []), text.replace(": ", ":").replace("; ", ";")])
        return f' class="{looks.setdefault(text, _letters(len(looks)))}"'

    svg = re.sub(r'(?: clip-path="([^"]*)")? style="([^"]*)"', named, svg)
    rules = "".join(f".{own} .{name}{{{text}}}" for text, name in looks.items())
    return svg.replace("<svg ", f'<svg class="{own}" ', 1).replace("</style>", f"{rules}</style>", 1)


def _tenth(number: str) -> str:
    """A number with at most one decimal."""
    return f"{round(float(number), 1):g}"


def _letters(number: int) -> str:
    """A name: a to z, then aa, ba, ..."""
    letter = chr(ord("a") + number % 26)
    return letter + (_letters(number // 26 - 1) if number >= 26 else "")


def _steps(path: str) -> str:
    """A path of straight lines with relative steps in tenths; any other one as it is."""
    points = re.findall(r"([MLz])\s*(?:(-?[\d.]+) (-?[\d.]+))?", path)
    if re.search(r"[^MLz\s\d.-]", path):
        return re.sub(r"\s+", " ", path).strip()
    here, last, text = (0, 0), "", [""]
    for kind, *place in points:
        if kind == "z":
            text.append("z")
            last = "z"
            continue
        x, y = (round(10 * float(v)) for v in place)
        dx, dy = (x, y) if kind == "M" else (x - here[0], y - here[1])
        # A line after a line needs no letter.
        letter = "" if kind == last == "L" else kind.replace("L", "l")
        text += [letter + _tenths(dx, "" if letter else text[-1])]
        text += [_tenths(dy, text[-1])]
        here, last = (x, y), kind
    return "".join(text)


def _tenths(value: int, before: str) -> str:
    """A number of tenths after another number: ``12`` is ``1.2``, and ``.3`` needs no space after ``1.2``."""
    text = re.sub(r"^(-?)0\.", r"\1.", f"{value / 10:g}")
    joins = not before or value < 0 or (text[0] == "." and "." in before)
    return text if joins else f" {text}"


def legend_above(canvas: Canvas, axes: Axes) -> None:
    """Draw the legend of ``axes`` as rows above everything."""
    handles, labels = axes.get_legend_handles_labels()
    spacing = {"columnspacing": 1.1, "handlelength": 1.6, "handletextpad": 0.5}
    canvas.legend(handles, labels, ncols=5, loc="outside upper left", **spacing)


def ramp(count: int) -> list[str]:
    """Colours of ``count`` ordered curves."""
    colors = [VERMILION, ORANGE, GREEN, SKY, BLUE, PURPLE, GREY]
    return [colors[i % len(colors)] for i in range(count)]


def shade_days(axes: Axes, days: list[tuple[float, float]], divide: float = 1.0) -> None:
    """Shade the time during which the pair has the circuit."""
    for start, end in days:
        axes.axvspan(start / divide, end / divide, **DAY_SHADE)
