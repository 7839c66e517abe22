"""Finds and reads claims: each folder of ``experiments/<paper>/`` that has a ``claim.toml`` is one."""

import difflib
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from firstlight.claims.claim import Claim
from firstlight.claims.form import Axis, Case, Curve, Least, Measure, Options, Plot, table
from firstlight.claims.statement import CURVE, StatedCheck, statement
from firstlight.core import Spec
from firstlight.errors import PlanError
from firstlight.folders import folder
from firstlight.runs.run import HOSTS, Hosts

REQUIRED = ("figure", "title", "section", "claim", "quick", "full")
OPTIONAL = (
    *("time_scales", "hosts", "linux", "axes", "curves"),
    *("paper", "measures", "statements", "not_comparable", "figures", "options"),
)
"""The keys of a ``claim.toml``."""


def find(root: Path | None = None) -> list[Claim]:
    """All claims, by paper and figure."""
    experiments = root or folder("experiments")
    if not experiments.is_dir():
        raise PlanError(f"{experiments}: no such folder; run from the checkout or set FIRSTLIGHT_EXPERIMENTS")
    return [read(f.parent) for f in sorted(experiments.glob("*/*/claim.toml"))]


def select(claims: Sequence[Claim], names: Sequence[str]) -> list[Claim]:
    """The claims that ``names`` mean: a folder's name, its beginning, or its paper; all claims when there is
    no name."""
    chosen: list[Claim] = []
    for name in names:
        wanted = name.rstrip("/")
        found = [c for c in claims if wanted in (c.name, c.folder.parent.name)]
        found = found or [c for c in claims if c.folder.name.startswith(wanted) or c.name.startswith(wanted)]
        if not wanted or not found:
            raise PlanError(f"no reproduction is called '{name}': {_instead_of(wanted, claims)}")
        chosen += [c for c in found if c not in chosen]
    return chosen if names else list(claims)


def _instead_of(wanted: str, claims: Sequence[Claim]) -> str:
    """The papers and folders whose names begin nearly as ``wanted``, or all folders if none does."""
    names = [*{c.folder.parent.name: None for c in claims}, *(c.folder.name for c in claims)]
    if near := difflib.get_close_matches(wanted, [n[: len(wanted)] for n in names if wanted], 1):
        return f"did you mean {' or '.join(n for n in names if n.startswith(near[0]))}?"
    return f"there are {', '.join(c.folder.name for c in claims)}"


def read(folder: Path) -> Claim:
    """Read one claim's folder; raises :class:`PlanError`."""
    file = folder / "claim.toml"
    try:
        claim = _claim(folder, tomllib.loads(file.read_text(encoding="utf-8")))
        if wrong := next(unknown_names(claim), None):
            raise ValueError(wrong)
    except (OSError, tomllib.TOMLDecodeError, TypeError, ValueError) as e:
        raise PlanError(f"{file}: {e}") from None
    return claim


def _claim(folder: Path, plan: Mapping[str, Any]) -> Claim:
    if missing := [key for key in REQUIRED if key not in plan]:
        raise ValueError(f"the key '{missing[0]}' is missing")
    if unknown := sorted(set(plan) - {*REQUIRED, *OPTIONAL}):
        raise ValueError(f"unknown key '{unknown[0]}'; known: {', '.join((*REQUIRED, *OPTIONAL))}")
    hosts = _hosts(plan, HOSTS)
    if ("statements" in plan) == ("not_comparable" in plan):
        raise ValueError("write [[statements]], or not_comparable with the reason")
    return Claim(
        name=f"{folder.parent.name}/{folder.name}",
        folder=folder,
        **{key: plan[key] for key in REQUIRED},
        spec=Spec.read(folder / "experiment.toml"),
        time_scales=tuple(plan.get("time_scales", [1])),
        axes=tuple(_axis(a) for a in plan.get("axes", [])),
        curves=tuple(_curve(c, hosts) for c in plan.get("curves", [{}])),
        on_linux=plan.get("linux", {}),
        paper=_expected(folder / "expected.csv"),
        linux=_expected(folder / "linux.csv"),
        measures=tuple(table(Measure, m, "[[measures]]") for m in plan.get("measures", [])),
        statements=tuple(statement(s) for s in plan.get("statements", [])),
        not_comparable=plan.get("not_comparable", ""),
        paper_file=plan.get("paper", "paper.toml"),
        plots=tuple(table(Plot, p, "[[figures]]") for p in plan.get("figures", [])),
        options=table(Options, plan.get("options", {}), "[options]"),
    )


def _hosts(given: Mapping[str, Any], default: tuple[Hosts, ...]) -> tuple[Hosts, ...]:
    named = given.get("hosts", default)
    if not named or set(named) - set(HOSTS):
        raise ValueError(f"hosts = {list(named)}; a list of {' and '.join(HOSTS)} is needed")
    return tuple(h for h in HOSTS if h in named)


def _curve(given: Mapping[str, Any], hosts: tuple[Hosts, ...]) -> Curve:
    cases = [table(Case, c, "cases") for c in given.get("cases", [])]
    return table(Curve, {**given, "hosts": _hosts(given, hosts), "cases": cases}, "[[curves]]")


def _axis(given: Mapping[str, Any]) -> Axis:
    least = {"least": table(Least, given["least"], "least")} if "least" in given else {}
    return table(Axis, {**given, **least}, "[[axes]]")


def _expected(file: Path) -> pd.DataFrame:
    return pd.read_csv(file, comment="#") if file.is_file() else pd.DataFrame()


def unknown_names(claim: Claim) -> Iterator[str]:
    """Names in a claim's tables that the claim does not have, each in a sentence."""
    curves, axes = {c.name for c in claim.curves}, {a.name: a for a in claim.axes}
    for place, names, at in _places(claim):
        for name in names:
            if name not in curves:
                yield f"{place}: there is no curve '{name}'"
        for name, v in at.items():
            if name not in axes or v not in axes[name].values:
                yield f"{place}: {name} = {v} is no value of an axis"
    for axis in axes.values():
        for some in (axis.quick, axis.linux):
            if stray := [v for v in some or () if v not in axis.values]:
                yield f"the axis {axis.name}: {stray[0]} is not among its values"
        if axis.settings and len(axis.settings) != len(axis.values):
            yield f"the axis {axis.name}: {len(axis.settings)} settings for {len(axis.values)} values"


Place = tuple[str, Sequence[str], Mapping[str, Any]]
"""A table of a claim, the curves that it names, and the values of axes that it names."""


def _places(claim: Claim) -> Iterator[Place]:
    for check in claim.checks:
        yield from _places_of(check)
    for measure in claim.measures:
        named = [*measure.curves, *([measure.minus] if measure.minus else [])]
        yield f"the measure {measure.metric}", named, {}
    for plot in claim.plots:
        yield f"the figure {plot.name}", plot.curves, plot.at
    for curve in claim.curves:
        for case in curve.cases:
            yield f"the curve {curve.name}", [], case.at
        for name, values in curve.only.items():
            yield from ((f"the curve {curve.name}", [], {name: v}) for v in values)


def _places_of(check: StatedCheck) -> Iterator[Place]:
    """The names in a check: curves, values of axes, and the axis that the check goes along."""
    place, compared = f"the check of {check.metric}", (*check.ratio, *check.order)
    yield place, check.curves, {}
    yield from ((place, [], {name: v}) for name, values in check.allowed().items() for v in values)
    if check.along == CURVE:
        yield place, [str(v) for v in compared], {}
    else:
        yield from ((place, [], {check.along: v}) for v in compared)
