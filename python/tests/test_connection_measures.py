"""Measures of connections and of parts of a run, on small fabrics; most follow from the experiment."""

from pathlib import Path
from typing import Any

import firstlight as fl
import pytest
from firstlight.claims import measures

STAR = """
duration = "100ms"

[fabric]
kind = "star"
hosts = 12

[hosts]
rate = "10Gbps"
delay = "10us"

[switch]
queue = "1MB"
ecn = "40kB"
drop_non_ect = 1.0

[tcp]
cc = "dctcp"
rto_initial = "1s"

[measure]
throughput = "1ms"
"""
SHARED = """
[[workload]]
name = "first"
kind = "staggered"
from = "host1"
to = "host0"
interval = "1s"

[[workload]]
name = "second"
kind = "staggered"
from = "host2"
to = "host0"
start = "25ms"
interval = "1s"
hold = "50ms"
"""
CROWD = """
[[workload]]
name = "crowd"
kind = "incast"
to = "host0"
senders = 10

[[workload]]
name = "late"
kind = "incast"
from = "host11"
to = "host0"
size = "1kB"
start = "20ms"
period = "5ms"
rounds = 8
"""


@pytest.fixture
def run(tmp_path: Path) -> Any:
    def run(text: str, settings: dict[str, Any] | None = None) -> fl.Result:
        file = tmp_path / "star.toml"
        file.write_text('name = "star"\n' + STAR + text)
        return fl.run(file, settings or {})

    return run


def test_parts_of_a_run_are_told_apart(run: Any) -> None:
    result = run(SHARED)
    alone, beside, after = (
        measures.value(result, f"gbps: first, {part} %") for part in ("10 to 25", "35 to 75", "80 to 100")
    )
    second = measures.value(result, "gbps: second, 35 to 75 %")
    assert alone is not None and beside is not None and after is not None and second is not None
    assert alone > 9.8 < after
    assert 1 < beside < 9 and beside + second == pytest.approx(9.9, abs=0.1)
    assert measures.value(result, "gbps: second, 80 to 100 %") == 0
    jain = measures.value(result, "jain: 35 to 75 %")
    assert jain is not None and 0.5 < jain <= 1
    assert measures.value(result, "jain: 10 to 25 %") == pytest.approx(0.5), "one of two flows has all"
    assert measures.value(result, "gbps: third, 1 to 2 %") == 0


def test_flows_that_do_not_meet_converge_at_once_and_stopped_ones_never(run: Any) -> None:
    result = run(SHARED, {"workload.1.to": "host3"})
    convergence = measures.value(result, "convergence_ms: 25 %")
    assert convergence is not None and convergence <= 2
    assert measures.value(result, "convergence_ms: 80 %") is None


def test_syns_pass_a_crowded_port_where_they_are_ecn_capable(run: Any) -> None:
    none, both = run(CROWD), run(CROWD, {"tcp.ect_syn": "both"})
    assert measures.value(none, "established_pct: late") == 0
    assert measures.value(none, "establish_p50_us: late") is None
    for name in ("established_pct: late", "first_try_pct: late", "established_pct: crowd"):
        assert measures.value(both, name) == 100
    time = measures.value(both, "establish_p50_us: late")
    assert time is not None and 40 < time < 1000


def test_shares_are_those_of_endless_flows(run: Any) -> None:
    result = run(CROWD, {"tcp.ect_syn": "both"})
    least, median, most, jain = (
        measures.value(result, name)
        for name in ("flow_gbps_min", "flow_gbps_p50", "flow_gbps_max", "jain_of_flows")
    )
    assert least is not None and median is not None and most is not None and jain is not None
    assert 0 < least <= median <= most < 10 and 0.5 < jain <= 1
    acks = measures.value(result, "packets_per_ack")
    assert acks is not None and 1 <= acks <= 2
    rate, interrupts = (measures.value(result, name) for name in ("acks_per_ms", "interrupts_per_ms"))
    assert rate is not None and interrupts is not None
    assert interrupts == pytest.approx(rate * (1 + acks), rel=0.1), "data packets and their ACKs"
