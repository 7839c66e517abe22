"""How platforms, curves and axes look in the figures of claims."""

from dataclasses import dataclass
from typing import Any

from firstlight.claims.form import Axis, Curve, Measure
from firstlight.claims.outcome import Measured
from firstlight.figures.style import BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, VERMILION

COLORS = (BLUE, VERMILION, GREEN, ORANGE, PURPLE, SKY, GREY)
LINES = ("-", "--", "-.", ":", "-", "--", "-.")
MARKERS = "os^Dv<>"
FULL = {20: BLUE, 1: VERMILION}
PALE = {20: SKY, 1: ORANGE}
"""Colours of simulated hosts, by time scale, where Linux hosts are shown too."""


@dataclass(frozen=True)
class Look:
    """How one platform is drawn: full colours for Linux hosts, and for simulated hosts that are shown
    alone."""

    name: str
    color: str
    line: str
    marker: str
    filled: bool

    @classmethod
    def of(cls, view: Measured) -> "Look":
        """The look of a view's platform beside the outcome's others."""
        hosts, scale = view.platform
        full = hosts == "linux" or view.outcome.hosts == ("simulated",)
        name = f"{view.platform.kind}, {view.platform.scale}"
        color = (FULL if full else PALE).get(scale, GREY)
        return cls(name, color, "-" if full else ":", "^" if scale == 1 else "s", full)

    @property
    def plot(self) -> dict[str, Any]:
        """Keywords of ``Axes.plot`` for a line with markers."""
        return {**self.curve, "marker": self.marker, "mfc": self.color if self.filled else "white"}

    @property
    def curve(self) -> dict[str, Any]:
        """Keywords of ``Axes.plot`` for a line without markers."""
        return {"color": self.color, "ls": self.line, "label": self.name}


def look_of(view: Measured, curve: Curve) -> dict[str, Any]:
    """Keywords of ``Axes.plot`` for a claim's curve."""
    i = list(view.curves).index(curve.name) % len(COLORS)
    return {"color": COLORS[i], "ls": LINES[i], "label": curve.name}


def marker_of(view: Measured, curve: Curve) -> str:
    """The marker of a claim's curve."""
    return MARKERS[list(view.curves).index(curve.name) % len(MARKERS)]


def axis_label(axis: Axis) -> str:
    """``Senders (hosts)``; the label alone where the unit is in it."""
    unit = "" if axis.unit.lower() in ("", axis.label.lower()) else f" ({axis.unit})"
    return f"{axis.label}{unit}"


def measure_label(measure: Measure) -> str:
    """``Mean wait (us)``; the label alone where the unit is in it."""
    label = measure.label[0].upper() + measure.label[1:]
    said = not measure.unit or measure.unit in measure.label.lower().split()
    return label if said else f"{label} ({measure.unit})"
