"""A control loop as a user runs and reads it."""

from pathlib import Path

import firstlight as fl
import pytest
from firstlight.pages.report import write

SPECS = Path(__file__).parents[2] / "crates" / "lab" / "tests" / "specs"


@pytest.fixture(scope="module")
def ring(tmp_path_factory: pytest.TempPathFactory) -> fl.Result:
    return fl.run(SPECS / "ring.toml", {"duration": "20ms"}, out=tmp_path_factory.mktemp("loop") / "ring")


def test_circuits_have_demand_and_bytes(ring: fl.Result) -> None:
    circuits = ring.circuits
    assert set(circuits["week"]) <= set(range(1, 20))
    assert circuits["carried_bytes"].sum() == ring.summary["circuit_bytes"]
    big = circuits[(circuits["week"] == 1) & (circuits["dst"] == (circuits["src"] + 1) % 4)]
    assert (big["demand_bytes"] > 20e6).all() and len(big) >= 4


def test_the_report_draws_circuits(ring: fl.Result) -> None:
    assert ring.path is not None
    page = write(ring.path).read_text()
    assert "circuits in weeks 1 to 12, by destination" in page


def test_inspect_names_the_loop() -> None:
    week = fl.inspect(SPECS / "ring.toml", {"control.compute": "35us"})["week"]
    assert week["scheduler"] == "solstice" and week["demand"] == "adu" and week["compute_us"] == 35
