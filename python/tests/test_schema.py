"""The JSON Schema of experiments, judged by a validator that knows nothing of Firstlight."""

import ast
import copy
import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Command
from firstlight import core
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = sorted((ROOT / "experiments").glob("**/experiment.toml"))
HYBRID = ROOT / "experiments" / "etalon" / "fig09-dynamic-voq" / "experiment.toml"


@pytest.fixture(scope="module")
def validator() -> Draft202012Validator:
    schema = json.loads(core.schema())
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: str(file.parent.relative_to(ROOT)))
def test_every_shipped_experiment_follows_the_schema(validator: Draft202012Validator, file: Path) -> None:
    validator.validate(tomllib.loads(file.read_text()))


@pytest.mark.parametrize(
    ("table", "key", "value"),
    [
        ("", "duraton", "1s"),
        ("", "duration", "1"),
        ("", "duration", 5),
        ("", "seed", -1),
        ("voq", "smal", 3),
        ("voq", "small", "many"),
        ("circuit", "rate", "10 parsecs"),
        ("fabric", "kind", "hybird"),
        ("fabric", "racks", 2.5),
        ("fabric", "hosts", 4),
        ("schedule", "night", "20us per week"),
        ("measure", "pair", [0]),
        ("chain", "stage", "kernel"),
    ],
)
def test_a_wrong_experiment_does_not(
    validator: Draft202012Validator, table: str, key: str, value: Any
) -> None:
    """``hosts`` is a key of another kind of fabric, ``[chain]`` one of another kind of experiment."""
    document = tomllib.loads(HYBRID.read_text())
    assert validator.is_valid(document)
    wrong = copy.deepcopy(document)
    (wrong.setdefault(table, {}) if table else wrong)[key] = value
    assert not validator.is_valid(wrong)


def test_the_command_prints_the_schema(command: Command) -> None:
    printed = command("schema")
    assert printed.returncode == 0, printed.stderr
    assert json.loads(printed.stdout) == json.loads(core.schema())


def paths(schema: dict[str, Any], at: str = "") -> Iterator[str]:
    """The path of each key; ``*`` stands for the number of an entry of a list."""
    for part in [*schema.get("anyOf", []), *schema.get("oneOf", [])]:
        yield from paths(part, at)
    if isinstance(schema.get("items"), dict):
        yield from paths(schema["items"], f"{at}.*")
    for name, key in schema.get("properties", {}).items():
        yield (path := f"{at}.{name}" if at else name)
        yield from paths(key, path)


def texts() -> Iterator[tuple[str, str]]:
    """The texts of the code outside tests, each with its place."""
    for file in sorted((ROOT / "python" / "firstlight").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield f"{file}:{node.lineno}", node.value
    for crate in ("spec", "lab", "formats", "linux", "uml", "guest", "dilated", "py"):
        for file in sorted((ROOT / "crates" / crate / "src").rglob("*.rs")):
            for number, line in enumerate(file.read_text().split("#[cfg(test)]")[0].splitlines(), 1):
                quoted = r"`([^`]*)`" if line.lstrip().startswith("//") else r'"((?:[^"\\]|\\.)*)"'
                for text in re.findall(quoted, line):
                    yield f"{file}:{number}", text


FILES = re.compile(r"\.(csv|json|txt|toml|ko|o|h|svg|png)$")
PLACES = re.compile(r"(voq|circuit|uplink|downlink)\.(\d|to)|(flows|workload)\.\d+$")
"""Names of ports and VOQs, and of entries."""


def test_keys_in_messages_and_code_are_keys_that_there_are() -> None:
    """A table's entry may stand for each of its entries: ``flows.size`` for ``flows.0.size``."""
    keys = set(paths(json.loads(core.schema())))
    tables = {key.split(".")[0] for key in keys if "." in key}
    known = keys | {key.replace(".*.", ".") for key in keys}
    found, wrong = 0, []
    for place, text in texts():
        for name in re.findall(r"(?<![\w./])([a-z_]+(?:\.[a-z_0-9]+)+)(?![\w(/])", text):
            if name.split(".")[0] in tables and not FILES.search(name) and not PLACES.match(name):
                found += 1
                path = ".".join("*" if part.isdigit() else part for part in name.split("."))
                wrong += [] if path in known else [f"{place}: {name}"]
    assert found > 200 and wrong == []
