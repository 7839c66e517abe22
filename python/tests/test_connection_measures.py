"""Measures of connections and of parts of a run, on small fabrics; most follow from the experiment."""

from pathlib import Path
from typing import Any

import firstlight as fl
import pytest
from firstlight.claims import measures
from firstlight.pages.report import write_result

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


def test_the_load_of_least_windows_is_measured_where_windows_stay_at_their_floor(run: Any) -> None:
    crowd = CROWD.split("[[workload]]")[1]
    result = run("[[workload]]" + crowd, {"tcp.max_window": 2, "tcp.ect_syn": "both", "hosts.mtu": "1500B"})
    formula, measured = (measures.value(result, name) for name in ("least_load_gbps", "load_gbps"))
    assert formula is not None and measured is not None
    # Ten senders of two packets of 1500 B each round trip.
    assert formula == pytest.approx(10 * 2 * 1500 * 8e-3 / result.flows["srtt_us"].mean())
    assert 3 < measured == pytest.approx(formula, rel=0.1)
    del result.manifest["spec"]["tcp"]["min_window"]  # as of Linux hosts
    assert measures.value(result, "least_load_gbps") == formula


def test_the_report_of_a_run_shows_flows_over_time(run: Any, tmp_path: Path) -> None:
    result = run(CROWD, {"tcp.ect_syn": "both"})
    result.save(tmp_path / "result")
    page = write_result(fl.load(tmp_path / "result")).read_text()
    assert "7 of 18 flows, from the one that received least to that with most" in page
    assert all(text in page for text in ("Throughput", "Delivered in order", "host1 to host0"))
    result = run(SHARED)
    result.save(tmp_path / "two")
    assert "flows, from" not in write_result(fl.load(tmp_path / "two")).read_text()


READS = """
[[workload]]
name = "values"
kind = "key_value"
from = "host1"
to = "all"
reads = 2
values = 3
size = "64kB"
request = "200B"
header = "50B"

[[workload]]
kind = "key_value"
from = "host2"
to = "host3"
reads = 1
values = 1
size = "10kB"
"""


def test_writes_of_bulk_reads_by_hand(run: Any) -> None:
    result = run(READS)
    # Small: 6 headers of 50 B, 6 times 150 B, a request of 100 B. Large: 6 values of 64 kB, one of 10 kB.
    small, large = 6 * 200 + 100, 6 * 64_000 + 10_000
    expected = {
        "small_writes_pct": 100 * 13 / 20,
        "large_bytes_pct": 100 * large / (small + large),
        "bytes_pct: values": 100 * 6 * 64_200 / (small + large),
        "bytes_pct: workload.1": 100 * 10_100 / (small + large),
    }
    for name, number in expected.items():
        assert measures.value(result, name) == pytest.approx(number), name
    assert measures.value(run(CROWD), "small_writes_pct") is None
