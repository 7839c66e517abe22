"""The settings of an experiment that a page can change: numbers, quantities with a unit, choices."""

import contextlib
import json
import math
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

from firstlight import _core, core
from firstlight.core import Spec

QUANTITY = re.compile(r"\s*([\d_]+(?:\.[\d_]+)?)\s*([a-zA-Z][a-zA-Z/]*)\s*")
FIXED = ("name", "duration", "warmup", "time_scale", "measure", "sweep", "program")
"""Tables and keys that say how an experiment is run and measured, not what is studied."""
REACH = 8
"""A slider goes from the file's value divided by this to its value times this."""
MOST_CHOICES = 40


@dataclass(frozen=True)
class Knob:
    """One setting."""

    key: str
    """Dotted, as of ``--set``."""
    value: float | str
    """The file's: a number, without its unit; or a word of ``choices``."""
    unit: str = ""
    """The unit that is written behind the number; empty for a bare number."""
    whole: bool = False
    """Whether only whole numbers are allowed."""
    low: float = 0.0
    high: float = 0.0
    choices: tuple[str, ...] = ()
    help: str = ""

    def as_dict(self) -> dict[str, Any]:
        """For a page."""
        return asdict(self)


def knobs(spec: Spec) -> list[Knob]:
    """The knobs of the keys that an experiment's file and its overrides have."""
    overrides = {key: typed(value) for key, value in spec.overrides.items()}
    experiment = {**_flat(spec.document), **overrides}
    found = (_knob(key, value) for key, value in experiment.items() if key.split(".")[0] not in FIXED)
    return [knob for knob in found if knob]


def typed(value: Any) -> Any:
    """A setting as a file has it: the text ``50`` of ``--set`` is a number there, ``600us`` a text."""
    try:
        found = tomllib.loads(f"value = {value}")["value"] if isinstance(value, str) else value
    except tomllib.TOMLDecodeError:
        return value
    return found if isinstance(found, bool | int | float | list) else value


def _flat(value: Any, path: str = "") -> dict[str, Any]:
    """Keys with dots, as overrides have them."""
    rows = (
        value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    )
    inner = [(f"{path}.{name}" if path else str(name), one) for name, one in rows]
    if not inner or (isinstance(value, list) and not all(isinstance(one, Mapping) for one in value)):
        return {path: value} if path else {}
    return {key: one for name, found in inner for key, one in _flat(found, name).items()}


def _knob(key: str, value: Any) -> Knob | None:
    rule = _rule(key)
    text = str(rule.get("description", ""))
    if isinstance(value, bool):
        return Knob(key, str(value).lower(), choices=("false", "true"), help=text)
    if isinstance(value, int | float):
        whole = isinstance(value, int) and rule.get("type") != "number"
        low, high = _range(float(value), rule)
        if whole:
            low, high = math.ceil(low), math.floor(high)
        return Knob(key, value, whole=whole, low=low, high=high, help=text)
    if not isinstance(value, str):
        return None
    choices = tuple(_choices(rule))
    if value in choices and 1 < len(choices) <= MOST_CHOICES and not key.endswith("kind"):
        return Knob(key, value, choices=choices, help=text)
    if (match := QUANTITY.fullmatch(value)) and _is_unit(match[2]):
        number = float(match[1])
        low, high = _range(number, {})
        return Knob(key, number, unit=match[2], low=low, high=high, help=text)
    return None


def _is_unit(word: str) -> bool:
    for read in (_core.bytes_of, _core.bps_of, _core.ps_of):
        with contextlib.suppress(_core.SpecError):
            read(f"1{word}")
            return True
    return False


def _range(value: float, rule: Mapping[str, Any]) -> tuple[float, float]:
    """The ends of a slider, within the key's own limits. A probability goes from 0 to 1."""
    least, most = float(rule.get("minimum", 0)), float(rule.get("maximum", float("inf")))
    if most <= 1:
        return least, most
    return max(least, value / REACH), min(most, max(value * REACH, least + REACH))


def _choices(rule: Mapping[str, Any]) -> Iterator[str]:
    """The words that a key takes, those of its alternatives included."""
    yield from rule.get("enum", ())
    if isinstance(rule.get("const"), str):
        yield rule["const"]
    for one in (*rule.get("oneOf", ()), *rule.get("anyOf", ())):
        yield from _choices(one)


@cache
def _schema() -> dict[str, Any]:
    tables: dict[str, Any] = json.loads(core.schema())["anyOf"][0]
    return tables


def _rule(key: str) -> dict[str, Any]:
    """The schema of a key; empty where it is that of one kind among several."""
    rule = _schema()
    for name in key.split("."):
        if name.isdigit():
            rule = rule.get("items", {})
            continue
        kinds = [rule, *rule.get("oneOf", ()), *rule.get("anyOf", ())]
        rule = next((k["properties"][name] for k in kinds if name in k.get("properties", {})), {})
    return rule
