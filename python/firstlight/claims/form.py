"""The tables of a ``claim.toml`` as dataclasses."""

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, Literal, TypeVar, get_args, get_origin

from firstlight.runs.run import HOSTS, Hosts

Mode = Literal["quick", "full"]
PlotKind = Literal[
    "bars",
    "cdf",
    "chain_deviation",
    "chain_gaps",
    "chain_rtts",
    "columns",
    "day",
    "dots",
    "fct_groups",
    "heat_map",
    "ladder",
    "lines",
    "overload",
    "ratios",
    "sequence",
    "throughput",
    "weeks",
]
Value = float | str
Table = TypeVar("Table")


@dataclass(frozen=True)
class Least:
    """The goal of a search for the smallest value of an axis: at least ``reaches`` of ``metric``."""

    metric: str
    reaches: float


@dataclass(frozen=True)
class Axis:
    """One varied quantity: the keys that it sets, and its values."""

    name: str
    label: str
    keys: tuple[str, ...]
    values: tuple[Value, ...]
    unit: str = ""
    pattern: str = "{}"
    """The key's value, with ``{}`` for the axis' value: ``{}us``."""
    settings: tuple[Value, ...] = ()
    """The keys' values, one for each value of the axis, where a pattern cannot state them."""
    quick: tuple[Value, ...] | None = None
    """The values of the quick set; all of them if ``None``."""
    linux: tuple[Value, ...] | None = None
    """The values that run on Linux hosts; all of them if ``None``."""
    repeat: bool = False
    """Whether the values only repeat a run, as seeds do; rows are means over them."""
    least: Least | None = None
    """If given, only the smallest value counts that reaches this."""

    @property
    def varies(self) -> bool:
        """Whether rows and figures have a point for each of its values."""
        return not self.repeat and self.least is None

    def overrides(self, value: Value) -> dict[str, Any]:
        """The keys and their values for ``value``: the value itself, or a text such as ``150us``."""
        if self.settings:
            setting = self.settings[self.values.index(value)]
        else:
            setting = value if self.pattern == "{}" else self.pattern.format(value)
        return dict.fromkeys(self.keys, setting)

    def text(self, value: Value) -> str:
        """``150 us``; ``alpha 2`` where there is no unit; a name as it is."""
        if isinstance(value, str):
            return value
        return f"{value:g} {self.unit}" if self.unit else f"{self.label} {value:g}"

    def of(self, mode: Mode, hosts: Hosts) -> tuple[Value, ...]:
        """The values of ``mode`` on ``hosts``."""
        chosen = [self.quick if mode == "quick" else None, self.linux if hosts == "linux" else None]
        return tuple(v for v in self.values if all(some is None or v in some for some in chosen))


def short(value: Value) -> str:
    """The text of a value at a figure's axis."""
    return value if isinstance(value, str) else f"{value:g}"


@dataclass(frozen=True)
class Case:
    """Keys that a curve sets at some values of axes."""

    at: Mapping[str, Any]
    set: Mapping[str, Any]


@dataclass(frozen=True)
class Curve:
    """One variant that is run at every point."""

    name: str = ""
    set: Mapping[str, Any] = field(default_factory=dict)
    hosts: tuple[Hosts, ...] = HOSTS
    cases: tuple[Case, ...] = ()
    only: Mapping[str, Sequence[Value]] = field(default_factory=dict)
    """The points at which the curve is run: values of axes."""

    def is_at(self, at: Mapping[str, Value]) -> bool:
        """Whether it is run at a point, which is given by the names of axes."""
        return all(at[name] in values for name, values in self.only.items())

    def overrides(self, at: Mapping[str, Value]) -> dict[str, Any]:
        """The keys that it sets at a point."""
        chosen = dict(self.set)
        for case in self.cases:
            if all(at[name] == value for name, value in case.at.items()):
                chosen |= case.set
        return chosen


@dataclass(frozen=True)
class Measure:
    """A metric that has a row at every point of every curve, or of ``curves``."""

    metric: str
    figure: str
    label: str
    unit: str
    curves: tuple[str, ...] = ()
    of: str = ""
    """The metric of the summary or of :mod:`firstlight.claims.measures`, if its name differs."""
    minus: str = ""
    """A curve whose value at the same point is subtracted."""
    detail: bool = False
    """Whether the report and JSON alone have its rows."""


@dataclass(frozen=True)
class Plot:
    """A figure that the claim has."""

    name: str
    kind: PlotKind
    caption: str
    metrics: tuple[str, ...] = ()
    label: str = ""
    """The label of the axis; if empty, the measure's."""
    curves: tuple[str, ...] = ()
    """The curves that are shown; all of them if empty."""
    at: Mapping[str, Any] = field(default_factory=dict)
    """The point that is shown, by values of axes; if empty, the first point."""
    values: tuple[Value, ...] = ()
    """The values of the first axis that are shown; all of them if empty."""
    panels: str = ""
    """The axis that has a panel for each of its values, or ``time_scale``."""
    by: str = ""
    """The axis that has a line for each of its values."""
    levels: Mapping[str, float] = field(default_factory=dict)
    """Horizontal lines: label and height."""
    logarithmic: bool = False
    """Whether the horizontal axis is logarithmic."""
    table: str = ""
    column: str = ""
    weight: str = ""
    """A column of counts, one for each row of ``table``."""
    where: Mapping[str, Any] = field(default_factory=dict)
    """Only the rows of ``table`` that have these values."""
    divide: float = 1.0
    """How many units of the metric or column make one of the label's."""
    before_us: float = 0.0
    """How long before a day the figure begins."""


@dataclass(frozen=True)
class Options:
    """How a claim is shown and planned."""

    table: Literal["numbers", "curves"] = "numbers"
    cost_quick: float = 1.0
    cost_full: float = 1.0
    """The cost of a run, relative to the runs of other claims."""


def table(kind: type[Table], given: Mapping[str, Any], place: str) -> Table:
    """Read one TOML table, which stands at ``place`` (for messages), as ``kind``.

    Raises ``ValueError`` for an unknown or missing key, and for a word that is not allowed.
    """
    known = {f.name: f for f in fields(kind)}  # type: ignore[arg-type]
    if unknown := sorted(set(given) - set(known)):
        raise ValueError(f"{place}: unknown key '{unknown[0]}'; known: {', '.join(known)}")
    for key, f in known.items():
        if key not in given and f.default is MISSING and f.default_factory is MISSING:
            raise ValueError(f"{place}: the key '{key}' is missing")
        if key in given and get_origin(f.type) is Literal and given[key] not in get_args(f.type):
            words = ", ".join(get_args(f.type))
            raise ValueError(f"{place}: {key} = '{given[key]}'; one of {words} is needed")
    return kind(**{k: tuple(v) if isinstance(v, list) else v for k, v in given.items()})
