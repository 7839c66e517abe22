"""The JSON Schema of experiments, judged by a validator that knows nothing of Firstlight."""

import copy
import json
import tomllib
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
