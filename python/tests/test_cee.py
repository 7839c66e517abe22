"""Features that the study of TCP over CEE needs: times of jobs, figures of an overload, tables by curve,
schedules."""

import hashlib
import importlib
import re
from pathlib import Path
from typing import Any

import firstlight as fl
import pytest
from firstlight.claims import measures
from firstlight.claims.claim import Platform
from firstlight.claims.outcome import Outcome
from firstlight.claims.read import find
from firstlight.claims.reproduce import plan
from firstlight.figures import overload
from firstlight.figures.gallery import figures
from firstlight.folders import folder
from firstlight.goal import BENCHMARKS, NAMES, generate
from firstlight.pages.lines import grid
from firstlight.runs.result import Result
from firstlight.runs.run import HOSTS

CEE = [c for c in find() if c.folder.parent.name == "cee"]
HPC = folder("experiments") / "cee" / "hpc"


def result_of(spec: dict[str, Any], **tables: dict[str, list[Any]]) -> Result:
    """A result of these tables alone."""
    summary = {"metric": ["timeouts"], "unit": ["timeouts"], "value": [3.0], "meaning": [""]}
    return Result({"digest": "0" * 16, "spec": spec}, {"summary": summary, **tables})


def jobs(starts: list[float], times: list[float], kind: str = "paced") -> Result:
    table: dict[str, list[Any]] = {"workload": [kind] * len(starts), "start_us": starts, "duration_us": times}
    return result_of({"workload": [{"kind": kind}]}, jobs=table)


def test_p95_is_of_the_jobs_that_completed() -> None:
    times = [float(n) for n in range(1, 41)]
    result = jobs([0.0] * 42, [*times, float("nan"), float("nan")], "partition_aggregate")
    assert measures.value(result, "job_p95_us") == 38.0
    assert measures.value(result, "step 0: max_ms") is None, "queries have no steps"
    assert measures.value(jobs([0.0], [float("nan")]), "job_p95_us") is None


def test_steps_of_writers_have_times_once_all_writers_have_caught_up() -> None:
    starts = [0.0, 5e3, 9e3, 0.0, 5e3, 9e3]
    result = jobs(starts, [5e3, 6e3, float("nan"), 5e3, 8e3, 1e3])
    assert measures.value(result, "step 1: max_ms") == 8.0
    assert measures.value(result, "step 1: mean_ms") == 7.0
    assert measures.value(result, "step 2: max_ms") is None


def test_an_overload_shows_all_flows_together_and_the_first_queue() -> None:
    result = result_of(
        {},
        throughput={"time_us": [0.0, 0.0, 1e3], "flow": [0, 1, 0], "goodput_gbps": [1.0, 2.0, 4.0]},
        queue_samples={"name": ["a", "b", "a"], "time_us": [0.0, 0.0, 1500.0], "bytes": [1500, 7, 3000]},
    )
    assert [line.tolist() for line in overload.together(result)] == [[0.0, 1.0], [3.0, 4.0]]
    assert [line.tolist() for line in overload.queue(result)] == [[0.0, 1.0], [1.5, 3.0]]


def test_schedules_have_the_digests_that_are_pinned() -> None:
    pinned = [line.split() for line in (HPC / "schedules.sha256").read_text().splitlines()]
    assert [file for _, file in pinned] == [f"{name}.goal" for name in NAMES]
    for (digest, _), name in zip(pinned, NAMES, strict=True):
        text = generate(name, 16, problem="A" if name in BENCHMARKS else None)
        assert hashlib.sha256(text.encode()).hexdigest() == digest, name


def test_the_claim_runs_the_schedules_that_are_pinned() -> None:
    claim = next(c for c in CEE if c.folder == HPC)
    application = next(axis for axis in claim.axes if axis.name == "application")
    assert application.values == NAMES
    assert application.settings == tuple(f"{name}.A" if name in BENCHMARKS else name for name in NAMES)
    assert claim.spec.document["fabric"]["racks"] * claim.spec.document["fabric"]["hosts_per_rack"] == 16


@pytest.mark.usefixtures("any_tick")
def test_every_curve_of_the_matrix_sets_its_controls() -> None:
    for claim in CEE:
        if claim.folder.name in ("timers", "pause-100mbps"):
            continue
        points = plan([claim], "quick", HOSTS)
        kinds = {"Base": "", "QCN 20 KB": "qcn", "QCN 66 KB": "qcn", "RED-ECN": "switch.red"}
        assert [c.name for c in claim.curves] == [f"{k}{p}" for p in ("", ", PFC") for k in kinds]
        for (_, ((hosts, _), curve, at)), point in points.items():
            sets = point.spec.overrides
            assert sets["tcp.cc"] == at[0]
            assert sets.get("tcp.tick") == ("1ms" if hosts == "linux" else None)
            assert ("pfc.xoff" in sets) == curve.endswith("PFC") != ("switch.queue" in sets)
            manager = kinds[curve.removesuffix(", PFC")]
            found = {table for table in ("qcn", "switch.red") if any(k.startswith(f"{table}.") for k in sets)}
            assert found == ({manager} if manager else set())


def test_all_of_the_study_runs_on_linux_hosts() -> None:
    """Every claim runs on Linux hosts, except with clocks that no kernel has. Settings that a kernel cannot
    have would be refused."""
    runs = {c.folder.name: c.runs("quick", ["linux"]) for c in CEE}
    for claim in CEE:
        for run in runs[claim.folder.name]:
            assert claim.point(run, "quick").spec.check().resolved["tcp"]["tick"] == "1ms"
    names = {curve for _, curve, _ in runs["timers"]}
    assert names == {"stock", "all tweaks", "variance 2 ms besides", "stock, PFC", "all tweaks, PFC"}
    for beside in ("queries-tcp-background", "queries-udp-background"):
        assert {at[1] for _, _, at in runs[beside]} == {1000, 10000}
    assert len(runs["hpc"]) == 3 * 9 * 8
    assert runs["hotspot"] and runs["pause-100mbps"]


@pytest.fixture
def hotspot() -> Outcome:
    """The hotspot for 12 ms of two curves of NewReno; the overload begins at 2 ms."""
    claim = next(c for c in CEE if c.folder.name == "hotspot")
    outcome = Outcome(claim, "quick")
    for (_, run), point in plan([claim], "quick").items():
        _, curve, at = run
        if at == ("newreno",) and curve in ("Base", "Base, PFC"):
            steps = ["0s 700Mbps", "2ms 5.7Gbps", "3ms 700Mbps"]
            short = point.spec.with_overrides({"duration": "20ms", "workload.0.steps": steps})
            outcome.results[run] = fl.run(short.path, short.overrides)
    return outcome


def test_an_overload_from_run_to_figure_and_table(hotspot: Outcome) -> None:
    first = next(m for m in hotspot.claim.measures if m.metric == "step 1: max_ms")
    head, line = grid(hotspot, first)
    assert head == ("tcp", *(c.name for c in hotspot.claim.curves))
    assert line[0] == "newreno"
    assert {cell for name, cell in zip(head, line, strict=True) if "Base" not in name and name != "tcp"} == {
        "-"
    }
    # 5 MB of payload through 10 Gb/s, beside the next step's: no less than 4 ms.
    assert float(line[head.index("Base, PFC")]) >= 4.0
    pictures = {f.name: f.svg for f in figures(hotspot)}
    assert "Throughput (Gb/s)" in pictures["hotspot-lossy"]
    assert "Base, PFC" in pictures["hotspot-pfc"]
    assert "Base, PFC" not in pictures["hotspot-lossy"]


def test_an_overload_on_linux_hosts_has_the_same_figures(hotspot: Outcome) -> None:
    linux = Platform("linux")
    hotspot.results |= {(linux, curve, at): result for (_, curve, at), result in hotspot.results.items()}
    pictures = {f.name: f.svg for f in figures(hotspot)}
    assert "Throughput (Gb/s)" in pictures["hotspot-lossy-linux"]
    assert "Throughput (Gb/s)" in pictures["hotspot-pfc-linux"]


def test_marks_without_an_order_are_not_joined() -> None:
    claim = next(c for c in CEE if c.folder.name == "pause-100mbps")
    outcome = Outcome(claim, "quick")
    metrics = [m.metric for m in claim.measures]
    for run in claim.runs("quick"):
        numbers = [1.5 if run[1] == "no PAUSE" else 1.0, 2.0, 3.0]
        rows = {"metric": metrics, "unit": [""] * 3, "value": numbers, "meaning": [""] * 3}
        outcome.results[run] = Result({"digest": "0" * 16, "spec": {}}, {"summary": rows})
    picture, ratio = figures(outcome)
    assert "stroke: #0072b2; stroke-width: 1.6" not in picture.svg
    assert "newreno" in picture.svg
    assert "no PAUSE" in picture.svg
    assert ">Timeouts<" in picture.svg and "(timeouts)" not in picture.svg
    # Ours is 1.5, so the axis goes beyond that; the paper's numbers have their shade.
    assert "paper" in ratio.svg and "No PAUSE / PAUSE" in ratio.svg
    assert max(float(tick) for tick in re.findall(r">([0-9.]+)</text>", ratio.svg)) >= 1.4


def test_documents_get_their_tables(hotspot: Outcome, tmp_path: Path) -> None:
    refresh = importlib.import_module("refresh")
    tables = ("hotspot dropped_packets -->\nold", "hpc x -->\nkept")
    text = "".join(f"<!-- table {t}\n<!-- end -->\n" for t in tables)
    new = refresh.TABLE.sub(lambda m: refresh.table_of(m, {"hotspot": hotspot}), text)
    assert "old" not in new
    assert "kept" in new
    assert re.search(r"Packets dropped \(packets\):\n\n\| tcp \| Base \| Base, PFC \|\n", new), (
        "columns without numbers are left out"
    )
    assert re.search(r"\| newreno \| [\d.]+ \| 0.00 \|\n", new)
    # Lines of Linux hosts stay where only simulated hosts were run.
    linux = re.sub(r"(\| newreno)( \|.*\n)", r"\1\2\1, Linux\2", new)
    assert "| newreno, Linux | " in linux
    assert refresh.TABLE.sub(lambda m: refresh.table_of(m, {"hotspot": hotspot}), linux) == linux
    assert "| tcp |" in refresh.measured(hotspot)
    # A claim on hosts that were not run keeps its table.
    text = "<!-- measured -->\nold\n<!-- end -->\n"
    nothing = Outcome(hotspot.claim, "quick")
    assert refresh.MEASURED.sub(lambda m: refresh.table_of_claim(m, nothing), text) == text
