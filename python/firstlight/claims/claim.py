"""One claim: a paper's statements, the experiment that tests them, and the numbers to compare with."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pandas as pd

from firstlight.claims.form import Axis, Curve, Measure, Mode, Options, Plot, Value, table
from firstlight.claims.statement import StatedCheck, Statement
from firstlight.core import Spec
from firstlight.runs.pool import Point
from firstlight.runs.run import Hosts

At = tuple[Value, ...]
"""A point of a claim: one value for each axis."""
COST: dict[Hosts, float] = {"simulated": 1.0, "linux": 2.0}
"""The approximate cost of a run, relative to the same run on simulated hosts."""


class Platform(NamedTuple):
    """The platform of an experiment: a kind of hosts, at a time scale."""

    hosts: Hosts = "simulated"
    time_scale: int = 1

    @property
    def kind(self) -> str:
        """``simulated`` or ``Linux``."""
        return "Linux" if self.hosts == "linux" else "simulated"

    @property
    def scale(self) -> str:
        """``exact time`` or ``scale 20``."""
        return "exact time" if self.time_scale == 1 else f"scale {self.time_scale}"


RunKey = tuple[Platform, str, At]
"""A run of a claim: platform, name of the curve, point."""


@dataclass(frozen=True)
class Paper:
    """The source of a folder's claims."""

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
    spec: Spec
    time_scales: tuple[int, ...]
    axes: tuple[Axis, ...]
    curves: tuple[Curve, ...]
    quick: Mapping[str, Any]
    full: Mapping[str, Any]
    on_linux: Mapping[str, Any]
    """Additional keys for Linux hosts."""
    paper: pd.DataFrame
    linux: pd.DataFrame
    measures: tuple[Measure, ...] = ()
    statements: tuple[Statement, ...] = ()
    not_comparable: str = ""
    """Why there is nothing to judge: the paper says nothing of this, or nothing that can be checked."""
    plots: tuple[Plot, ...] = ()
    paper_file: str = "paper.toml"
    """The file beside the folder that says which paper it is."""
    options: Options = field(default_factory=Options)

    @property
    def source(self) -> Paper:
        """The paper."""
        file = self.folder.parent / self.paper_file
        if not file.is_file():
            return Paper(self.folder.parent.name)
        return table(Paper, tomllib.loads(file.read_text(encoding="utf-8")), str(file))

    @property
    def display(self) -> str:
        """``Etalon Fig. 8``; claims of the text have a name of their own: ``Talk ADU``."""
        return self.of_paper(f"Fig. {self.figure}" if self.figure[0].isdigit() else self.figure)

    def of_paper(self, figure: str) -> str:
        """A figure's name with that of its paper."""
        return f"{self.source.name} {figure}"

    @property
    def checks(self) -> list[StatedCheck]:
        """The checks of all statements."""
        return [check for statement in self.statements for check in statement.checks]

    @property
    def dilated(self) -> bool:
        """Whether it is run at several time scales."""
        return len(self.time_scales) > 1

    def named(self, at: At) -> dict[str, Value]:
        """A point's values by the names of their axes."""
        return {axis.name: value for axis, value in zip(self.axes, at, strict=True)}

    def point_of(self, at: At) -> dict[str, Value]:
        """The values of the axes that vary, by name."""
        return {axis.name: value for axis, value in zip(self.axes, at, strict=True) if axis.varies}

    def is_whole(self, hosts: Hosts) -> bool:
        """Whether all points can be run on ``hosts``: else a number over points is not the paper's."""
        return all(axis.of("full", hosts) == axis.values for axis in self.axes if axis.varies)

    def ats(self, mode: Mode, hosts: Hosts = "simulated") -> list[At]:
        """The points of ``mode`` on ``hosts``."""
        return list(product(*(a.of(mode, hosts) for a in self.axes)))

    def runs(self, mode: Mode, hosts: Sequence[Hosts] = ("simulated",)) -> list[RunKey]:
        """Every run of ``mode`` on those of ``hosts`` that the claim is for."""
        return [
            (Platform(h, scale), c.name, at)
            for h in hosts
            for scale in self.time_scales
            for c in self.curves
            if h in c.hosts
            for at in self.ats(mode, h)
            if c.is_at(self.named(at))
        ]

    def label(self, at: At) -> str:
        """A point as a person names it."""
        return ", ".join(axis.text(v) for axis, v in zip(self.axes, at, strict=True)) or self.title

    def point(self, run: RunKey, mode: Mode) -> Point:
        """One run, ready to be executed."""
        platform, name, at = run
        curve = next(c for c in self.curves if c.name == name)
        overrides: dict[str, Any] = {**(self.quick if mode == "quick" else self.full)}
        overrides |= curve.overrides(self.named(at))
        if platform.hosts == "linux":
            overrides |= {"hosts.kind": "linux", **self.on_linux}
        overrides["time_scale"] = platform.time_scale
        for axis, value in zip(self.axes, at, strict=True):
            overrides |= axis.overrides(value)
        weight = self.options.cost_quick if mode == "quick" else self.options.cost_full
        words = (self.name, f"{platform.hosts} hosts", platform.scale, name, self.label(at))
        label = ", ".join(word for word in words if word)
        return Point(self.spec.with_overrides(overrides), label, weight * COST[platform.hosts])

    def expected(
        self, source: Literal["paper", "linux"], point: Mapping[str, Value], curve: str, time_scale: int
    ) -> Mapping[str, float]:
        """The row of ``expected.csv`` or ``linux.csv`` for a point of a curve; empty when there is none."""
        frame = self.paper if source == "paper" else self.linux
        for name, wanted in {**point, "curve": curve, "time_scale": time_scale}.items():
            if name in frame:
                frame = frame[frame[name] == wanted]
        return {} if frame.empty else {str(name): number for name, number in frame.iloc[0].items()}
