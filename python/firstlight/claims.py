"""Claims: what a paper says, how we try it, and the numbers to compare with.

Each folder of ``experiments/<paper>/`` that has a ``claim.toml`` is one claim. Beside it lie the experiment
that it starts from and the expected numbers as CSV files whose first lines (``#``) say where they come from.
"""

import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, Literal, get_args

import pandas as pd

from firstlight.core import Spec
from firstlight.errors import PlanError
from firstlight.pool import Point

Mode = Literal["quick", "full"]
Kind = Literal["points", "sequence", "fct", "gain", "grid"]
At = tuple[float, ...]
"""A point of a claim: one value per axis."""


@dataclass(frozen=True)
class Axis:
    """One varied quantity: the keys that it sets, and its values in each mode."""

    name: str
    label: str
    unit: str
    keys: tuple[str, ...]
    values: tuple[float, ...]
    quick: tuple[float, ...]
    pattern: str = "{}"

    def overrides(self, value: float) -> dict[str, Any]:
        """What to set for ``value``: the number itself, or a text such as ``150us``."""
        setting = value if self.pattern == "{}" else self.pattern.format(value)
        return dict.fromkeys(self.keys, setting)

    def text(self, value: float) -> str:
        """``150 us``; ``alpha 2`` where there is no unit."""
        return f"{value:g} {self.unit}" if self.unit else f"{self.label} {value:g}"


@dataclass(frozen=True)
class Curve:
    """One variant that is run at every point."""

    name: str
    time_scale: int
    set: dict[str, Any]
    variant: str = ""


@dataclass(frozen=True)
class Fact:
    """A number that stands in the paper's text."""

    metric: str
    paper: float
    quote: str


@dataclass(frozen=True)
class Claim:
    """One reproduction, as its folder describes it."""

    name: str
    folder: Path
    figure: str
    title: str
    section: str
    claim: str
    kind: Kind
    spec: Spec
    axes: tuple[Axis, ...]
    curves: tuple[Curve, ...]
    quick: dict[str, Any]
    full: dict[str, Any]
    paper: pd.DataFrame
    linux: pd.DataFrame
    facts: tuple[Fact, ...]
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def display(self) -> str:
        """``Fig. 8``; claims of the text have a name of their own."""
        return f"Fig. {self.figure}" if self.figure[0].isdigit() else self.figure

    def ats(self, mode: Mode) -> list[At]:
        """The points of ``mode``."""
        return list(product(*((a.quick if mode == "quick" else a.values) for a in self.axes)))

    def label(self, at: At) -> str:
        """A point as a person names it."""
        return ", ".join(axis.text(v) for axis, v in zip(self.axes, at, strict=True)) or self.title

    def point(self, curve: Curve, at: At, mode: Mode) -> Point:
        """The run behind one point of one curve."""
        overrides: dict[str, Any] = {**(self.quick if mode == "quick" else self.full), **curve.set}
        overrides["time_scale"] = curve.time_scale
        for axis, value in zip(self.axes, at, strict=True):
            overrides |= axis.overrides(value)
        weight = float(self.options.get(f"cost_{mode}", 1.0))
        return Point(
            self.spec.with_overrides(overrides), f"{self.name}, {curve.name}, {self.label(at)}", weight
        )

    def expected(self, table: Literal["paper", "linux"], at: At, time_scale: int) -> Mapping[str, float]:
        """The reference's row for a point, empty when it has none."""
        frame = self.paper if table == "paper" else self.linux
        for axis, value in zip(self.axes, at, strict=True):
            frame = frame[frame[axis.name] == value] if axis.name in frame else frame.iloc[:0]
        if "time_scale" in frame:
            frame = frame[frame["time_scale"] == time_scale]
        return {} if frame.empty else {str(k): float(v) for k, v in frame.iloc[0].items()}


def folder_of_experiments() -> Path:
    """The ``experiments`` folder: of ``FIRSTLIGHT_EXPERIMENTS``, else of the checkout, else of the working
    directory."""
    if named := os.environ.get("FIRSTLIGHT_EXPERIMENTS"):
        return Path(named)
    checkout = Path(__file__).resolve().parents[2] / "experiments"
    return checkout if checkout.is_dir() else Path("experiments")


def find(root: Path | None = None) -> list[Claim]:
    """All claims, by paper and figure."""
    folder = root or folder_of_experiments()
    if not folder.is_dir():
        raise PlanError(f"{folder}: no such folder; run from the checkout or set FIRSTLIGHT_EXPERIMENTS")
    return [read(f.parent) for f in sorted(folder.glob("*/*/claim.toml"))]


def select(claims: Sequence[Claim], names: Sequence[str]) -> list[Claim]:
    """The claims that ``names`` mean: a folder's name, its beginning, or its paper; all when there is no
    name."""
    chosen: list[Claim] = []
    for name in names:
        wanted = name.rstrip("/")
        found = [c for c in claims if wanted in (c.name, c.folder.parent.name)]
        found = found or [c for c in claims if c.folder.name.startswith(wanted) or c.name.startswith(wanted)]
        if not found:
            known = ", ".join(c.folder.name for c in claims)
            raise PlanError(f"no reproduction is called '{name}'; there are: {known}")
        chosen += [c for c in found if c not in chosen]
    return chosen if names else list(claims)


def read(folder: Path) -> Claim:
    """Read one claim's folder."""
    file = folder / "claim.toml"
    try:
        plan = tomllib.loads(file.read_text(encoding="utf-8"))
        return _claim(folder, plan)
    except (OSError, tomllib.TOMLDecodeError) as e:
        raise PlanError(f"{file}: {e}") from None
    except KeyError as e:
        raise PlanError(f"{file}: the key {e} is missing") from None
    except (TypeError, ValueError) as e:
        raise PlanError(f"{file}: {e}") from None


def _claim(folder: Path, plan: dict[str, Any]) -> Claim:
    known = {
        "figure",
        "title",
        "section",
        "claim",
        "kind",
        "axes",
        "curves",
        "quick",
        "full",
        "facts",
        "options",
    }
    if unknown := sorted(set(plan) - known):
        raise ValueError(f"unknown key '{unknown[0]}'; known: {', '.join(sorted(known))}")
    if plan["kind"] not in get_args(Kind):
        raise ValueError(f"kind = '{plan['kind']}'; one of {', '.join(get_args(Kind))} is needed")
    return Claim(
        name=f"{folder.parent.name}/{folder.name}",
        folder=folder,
        figure=plan["figure"],
        title=plan["title"],
        section=plan["section"],
        claim=plan["claim"],
        kind=plan["kind"],
        spec=Spec.read(folder / "experiment.toml"),
        axes=tuple(_axis(a) for a in plan.get("axes", [])),
        curves=tuple(
            Curve(c["name"], c["time_scale"], c.get("set", {}), c.get("variant", "")) for c in plan["curves"]
        ),
        quick=plan["quick"],
        full=plan["full"],
        paper=_expected(folder / "expected.csv"),
        linux=_expected(folder / "linux.csv"),
        facts=tuple(Fact(f["metric"], f["paper"], f["quote"]) for f in plan.get("facts", [])),
        options=plan.get("options", {}),
    )


def _axis(table: dict[str, Any]) -> Axis:
    values = tuple(table["values"])
    quick = tuple(table.get("quick", values))
    if stray := set(quick) - set(values):
        raise ValueError(f"axis {table['name']}: the quick values {sorted(stray)} are not among its values")
    keys = tuple(table["keys"])
    return Axis(
        table["name"], table["label"], table.get("unit", ""), keys, values, quick, table.get("pattern", "{}")
    )


def _expected(file: Path) -> pd.DataFrame:
    return pd.read_csv(file, comment="#") if file.is_file() else pd.DataFrame()
