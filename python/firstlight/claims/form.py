"""What a ``claim.toml`` of the kind ``measured`` holds, read."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, Literal, TypeVar, get_args

Over = Literal["mean", "least", "largest"]
Drawing = Literal[
    "lines",
    "cdf",
    "throughput",
    "chain_deviation",
    "chain_gaps",
    "chain_rtts",
    "ladder",
    "fct_groups",
    "heat_map",
    "bars",
    "overload",
    "ratios",
]
T = TypeVar("T")


@dataclass(frozen=True)
class Measure:
    """A metric that is a row at every point of every curve, or of ``curves``."""

    metric: str
    figure: str
    label: str
    unit: str
    curves: tuple[str, ...] = ()


@dataclass(frozen=True)
class Fact:
    """A number that stands in the paper's text. The last fields are those of measured claims."""

    metric: str
    paper: float
    quote: str
    curve: str = ""
    by: str = ""
    """Divide this curve's value by that of ``curve``."""
    at: Mapping[str, Any] = field(default_factory=dict)
    over: Over = "mean"
    figure: str = ""
    unit: str = ""


@dataclass(frozen=True)
class Least:
    """What the smallest value of an axis is searched for."""

    metric: str
    reaches: float


@dataclass(frozen=True)
class Case:
    """What a curve sets at some values of axes."""

    at: Mapping[str, Any]
    set: Mapping[str, Any]


@dataclass(frozen=True)
class Drawn:
    """A figure."""

    name: str
    kind: Drawing
    caption: str
    metrics: tuple[str, ...] = ()
    table: str = ""
    column: str = ""
    weight: str = ""
    label: str = ""
    at: Mapping[str, Any] = field(default_factory=dict)
    where: Mapping[str, Any] = field(default_factory=dict)
    """Of ``table`` only the rows that have these values."""
    curves: tuple[str, ...] = ()
    """``overload``: of these curves; else of all."""
    divide: float = 1.0
    """Units of ``column`` in one of the label."""
    logarithmic: bool = False
    """The horizontal axis."""


def table(kind: type[T], given: Mapping[str, Any]) -> T:
    """One TOML table as ``kind``; an unknown key, a missing one and a word that is none of the known are
    errors."""
    known = {f.name: f for f in fields(kind)}  # type: ignore[arg-type]
    name = kind.__name__.lower()
    if unknown := sorted(set(given) - set(known)):
        raise ValueError(f"unknown key '{unknown[0]}' of a {name}; known: {', '.join(known)}")
    for key, f in known.items():
        if key not in given and f.default is MISSING and f.default_factory is MISSING:
            raise KeyError(key)
    for key, words in (("over", get_args(Over)), ("kind", get_args(Drawing))):
        if key in given and given[key] not in words:
            raise ValueError(f"{key} = '{given[key]}' of a {name}; one of {', '.join(words)} is needed")
    return kind(**{k: tuple(v) if isinstance(v, list) else v for k, v in given.items()})


def strays(claim: Any) -> Iterator[str]:
    """What the tables of a measured claim name and the claim does not have, each in a sentence."""
    curves, axes = {c.name for c in claim.curves}, {a.name: a.values for a in claim.axes}
    places: list[tuple[str, Sequence[str], Mapping[str, Any]]] = [
        (f"the fact on {f.metric}", [f.curve, *([f.by] if f.by else [])], f.at) for f in claim.facts
    ]
    places += [(f"the measure {m.metric}", m.curves, {}) for m in claim.measures]
    places += [(f"the figure {f.name}", f.curves, f.at) for f in claim.figures]
    for curve in claim.curves:
        places += [(f"the curve {curve.name}", [], case.at) for case in curve.cases]
        places += [
            (f"the curve {curve.name}", [], {n: v}) for n, values in curve.only.items() for v in values
        ]
    for place, names, at in places:
        for name in names:
            if name not in curves:
                yield f"{place}: there is no curve '{name}'"
        for axis, v in at.items():
            if v not in axes.get(axis, ()):
                yield f"{place}: {axis} = {v} is no value of an axis"
