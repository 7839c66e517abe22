"""Claims: what a paper says, how we try it, and the numbers to compare with.

Each folder of ``experiments/<paper>/`` that has a ``claim.toml`` is one claim. Beside it lie the experiment
that it starts from and the expected numbers as CSV files whose first lines (``#``) say where they come from.
``experiments/<paper>/paper.toml`` says which paper it is.

Most kinds are figures of Etalon. The general one is ``measured``; :mod:`firstlight.measured` tells its form.
"""

import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, Literal, get_args

import pandas as pd

from firstlight.claims.form import Case, Drawn, Fact, Least, Measure, strays, table
from firstlight.core import Spec
from firstlight.errors import PlanError
from firstlight.runs.pool import Point

Mode = Literal["quick", "full"]
Kind = Literal["points", "sequence", "fct", "gain", "grid", "variants", "validation", "measured"]
Hosts = Literal["simulated", "linux"]
HOSTS: tuple[Hosts, ...] = get_args(Hosts)
Value = float | str
At = tuple[Value, ...]
"""A point of a claim: one value per axis."""
COST: dict[Hosts, float] = {"simulated": 1.0, "linux": 2.0}
"""What a run costs, about, relative to the same on simulated hosts."""


@dataclass(frozen=True)
class Axis:
    """One varied quantity: the keys that it sets, and its values in each mode."""

    name: str
    label: str
    unit: str
    keys: tuple[str, ...]
    values: tuple[Value, ...]
    quick: tuple[Value, ...]
    simulated: tuple[Value, ...]
    """The values that simulated hosts can do."""
    linux: tuple[Value, ...]
    """Those that are run on Linux hosts."""
    pattern: str = "{}"
    repeat: bool = False
    """Its values only repeat the same: rows are means over them."""
    least: Least | None = None
    """Only the smallest value counts that gives this."""

    @property
    def varies(self) -> bool:
        """Whether rows and figures have a point for each of its values."""
        return not self.repeat and self.least is None

    def overrides(self, value: Value) -> dict[str, Any]:
        """What to set for ``value``: itself, or a text such as ``150us``."""
        setting = value if self.pattern == "{}" else self.pattern.format(value)
        return dict.fromkeys(self.keys, setting)

    def text(self, value: Value) -> str:
        """``150 us``; ``alpha 2`` where there is no unit; a name as it is."""
        if isinstance(value, str):
            return value
        return f"{value:g} {self.unit}" if self.unit else f"{self.label} {value:g}"

    def of(self, mode: Mode, hosts: Hosts) -> tuple[Value, ...]:
        """The values of ``mode`` on ``hosts``."""
        chosen = self.quick if mode == "quick" else self.values
        return tuple(v for v in chosen if v in (self.linux if hosts == "linux" else self.simulated))


def short(value: Value) -> str:
    """A value as a figure's axis has it."""
    return value if isinstance(value, str) else f"{value:g}"


@dataclass(frozen=True)
class Curve:
    """One variant that is run at every point."""

    name: str
    time_scale: int
    set: dict[str, Any]
    variant: str = ""
    hosts: tuple[Hosts, ...] = HOSTS
    cases: tuple[Case, ...] = ()
    only: Mapping[str, Sequence[Value]] = field(default_factory=dict)

    def is_at(self, at: Mapping[str, Value]) -> bool:
        """Whether it is run at a point, told by the names of axes."""
        return all(at[name] in values for name, values in self.only.items())

    def overrides(self, at: Mapping[str, Value]) -> dict[str, Any]:
        """What it sets there."""
        chosen = dict(self.set)
        for case in self.cases:
            if all(at[name] == value for name, value in case.at.items()):
                chosen |= case.set
        return chosen


@dataclass(frozen=True)
class Paper:
    """Where the claims of a folder come from."""

    name: str
    title: str = ""
    venue: str = ""
    reading: str = ""
    """How to read the tables of its report."""


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
    on_linux: dict[str, Any]
    """What is set on Linux hosts besides."""
    paper: pd.DataFrame
    linux: pd.DataFrame
    facts: tuple[Fact, ...]
    options: dict[str, Any] = field(default_factory=dict)
    measures: tuple[Measure, ...] = ()
    figures: tuple[Drawn, ...] = ()

    @property
    def source(self) -> Paper:
        """The paper."""
        file = self.folder.parent / "paper.toml"
        if not file.is_file():
            return Paper(self.folder.parent.name)
        return table(Paper, tomllib.loads(file.read_text(encoding="utf-8")))

    def named(self, at: At) -> dict[str, Value]:
        """A point's values by the names of their axes."""
        return {axis.name: value for axis, value in zip(self.axes, at, strict=True)}

    @property
    def display(self) -> str:
        """``Fig. 8``; claims of the text have a name of their own."""
        return f"Fig. {self.figure}" if self.figure[0].isdigit() else self.figure

    def ats(self, mode: Mode, hosts: Hosts = "simulated") -> list[At]:
        """The points of ``mode`` on ``hosts``."""
        return list(product(*(a.of(mode, hosts) for a in self.axes)))

    def runs(self, mode: Mode, hosts: Sequence[Hosts] = ("simulated",)) -> list[tuple[Hosts, Curve, At]]:
        """Every run of ``mode`` on those of ``hosts`` that the claim is for."""
        return [
            (h, c, at)
            for h in hosts
            for c in self.curves
            if h in c.hosts
            for at in self.ats(mode, h)
            if c.is_at(self.named(at))
        ]

    def label(self, at: At) -> str:
        """A point as a person names it."""
        return ", ".join(axis.text(v) for axis, v in zip(self.axes, at, strict=True)) or self.title

    def point(self, curve: Curve, at: At, mode: Mode, hosts: Hosts = "simulated") -> Point:
        """The run behind one point of one curve."""
        overrides: dict[str, Any] = {**(self.quick if mode == "quick" else self.full)}
        overrides |= curve.overrides(self.named(at))
        if hosts == "linux":
            overrides |= {"hosts.kind": hosts, **self.on_linux}
        overrides["time_scale"] = curve.time_scale
        for axis, value in zip(self.axes, at, strict=True):
            overrides |= axis.overrides(value)
        weight = float(self.options.get(f"cost_{mode}", 1.0))
        label = f"{self.name}, {hosts} hosts, {curve.name}, {self.label(at)}"
        return Point(self.spec.with_overrides(overrides), label, weight * COST[hosts])

    def expected(self, source: Literal["paper", "linux"], at: At, time_scale: int) -> Mapping[str, float]:
        """The reference's row for a point, empty when it has none."""
        frame = self.paper if source == "paper" else self.linux
        for axis, value in zip(self.axes, at, strict=True):
            frame = frame[frame[axis.name] == value] if axis.name in frame else frame.iloc[:0]
        if "time_scale" in frame:
            frame = frame[frame["time_scale"] == time_scale]
        if frame.empty:
            return {}
        names = {axis.name for axis in self.axes}
        return {str(k): float(v) for k, v in frame.iloc[0].items() if k not in names}


def folder_of_experiments() -> Path:
    """The ``experiments`` folder: of ``FIRSTLIGHT_EXPERIMENTS``, else of the checkout, else of the working
    directory."""
    if named := os.environ.get("FIRSTLIGHT_EXPERIMENTS"):
        return Path(named)
    checkout = Path(__file__).resolve().parents[3] / "experiments"
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
        "hosts",
        "quick",
        "full",
        "linux",
        "facts",
        "options",
        *(("measures", "figures") if plan.get("kind") == "measured" else ()),
    }
    if unknown := sorted(set(plan) - known):
        raise ValueError(f"unknown key '{unknown[0]}'; known: {', '.join(sorted(known))}")
    if plan["kind"] not in get_args(Kind):
        raise ValueError(f"kind = '{plan['kind']}'; one of {', '.join(get_args(Kind))} is needed")
    claim = Claim(
        name=f"{folder.parent.name}/{folder.name}",
        folder=folder,
        figure=plan["figure"],
        title=plan["title"],
        section=plan["section"],
        claim=plan["claim"],
        kind=plan["kind"],
        spec=Spec.read(folder / "experiment.toml"),
        axes=tuple(_axis(a) for a in plan.get("axes", [])),
        curves=tuple(_curve(c, _hosts(plan, HOSTS), plan["kind"]) for c in plan["curves"]),
        quick=plan["quick"],
        full=plan["full"],
        on_linux=plan.get("linux", {}),
        paper=_expected(folder / "expected.csv"),
        linux=_expected(folder / "linux.csv"),
        facts=tuple(table(Fact, f) for f in plan.get("facts", [])),
        options=plan.get("options", {}),
        measures=tuple(table(Measure, m) for m in plan.get("measures", [])),
        figures=tuple(table(Drawn, f) for f in plan.get("figures", [])),
    )
    if claim.kind == "measured" and (wrong := next(strays(claim), None)):
        raise ValueError(wrong)
    return claim


def _hosts(given: dict[str, Any], default: tuple[Hosts, ...]) -> tuple[Hosts, ...]:
    named = given.get("hosts", default)
    if not named or set(named) - set(HOSTS):
        raise ValueError(f"hosts = {list(named)}; a list of {' and '.join(HOSTS)} is needed")
    return tuple(h for h in HOSTS if h in named)


def _curve(given: dict[str, Any], hosts: tuple[Hosts, ...], kind: Kind) -> Curve:
    return Curve(
        given["name"],
        given.get("time_scale", 1) if kind == "measured" else given["time_scale"],
        given.get("set", {}),
        given.get("variant", ""),
        _hosts(given, hosts),
        tuple(table(Case, c) for c in given.get("cases", [])),
        given.get("only", {}),
    )


def _axis(given: dict[str, Any]) -> Axis:
    values = tuple(given["values"])
    chosen = {name: tuple(given.get(name, values)) for name in ("quick", "simulated", "linux")}
    for name, some in chosen.items():
        if stray := [v for v in some if v not in values]:
            raise ValueError(f"axis {given['name']}: the {name} values {stray} are not among its values")
    return Axis(
        given["name"],
        given["label"],
        given.get("unit", ""),
        tuple(given["keys"]),
        values,
        pattern=given.get("pattern", "{}"),
        repeat=given.get("repeat", False),
        least=table(Least, given["least"]) if "least" in given else None,
        **chosen,
    )


def _expected(file: Path) -> pd.DataFrame:
    return pd.read_csv(file, comment="#") if file.is_file() else pd.DataFrame()
