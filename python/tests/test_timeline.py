"""Timelines (``--trace``): decoded by the ``perfetto`` package's own classes."""

import itertools
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import firstlight as fl
import networks
import pytest
from firstlight.cli import app
from firstlight.linux.kernels import Kernel
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos

INCAST = f'duration = "1s"{networks.INCAST}'
INCAST_BENCH = Path(__file__).parents[2] / "benches" / "incast.toml"
ACCOUNT = "\n[measure]\naccount = true\naccount_events = 1\n"


@dataclass
class Track:
    """A track of a timeline and what is on it."""

    slices: list[tuple[int, int, str, dict[str, Any]]] = field(default_factory=list)
    """Beginning, end, name, and what else is said of it: ``flow_ids`` are its arrows."""
    instants: list[tuple[int, str]] = field(default_factory=list)
    values: list[tuple[int, int]] = field(default_factory=list)


def decode(file: Path) -> dict[str, Track]:
    """The tracks of a timeline by their paths, ``flows/flow 0: .../state``."""
    trace = protos.Trace()
    trace.ParseFromString(file.read_bytes())
    names: dict[int, str] = {}
    tracks: dict[str, Track] = defaultdict(Track)
    open_: dict[int, list[tuple[int, str, dict[str, Any]]]] = defaultdict(list)
    kinds = protos.TrackEvent.Type
    described = [packet.track_descriptor for packet in trace.packet if packet.HasField("track_descriptor")]
    for track in described:
        assert track.uuid not in names
        above = f"{names[track.parent_uuid]}/" if track.HasField("parent_uuid") else ""
        names[track.uuid] = above + track.name
    events = [packet for packet in trace.packet if packet.HasField("track_event")]
    assert len(events) + len(described) == len(trace.packet)
    assert all(packet.trusted_packet_sequence_id == 1 for packet in trace.packet)
    for packet in sorted(events, key=lambda packet: packet.timestamp):
        event, at = packet.track_event, packet.timestamp
        track = tracks[names[event.track_uuid]]
        if event.type == kinds.TYPE_SLICE_BEGIN:
            said = {one.name: one.string_value or one.int_value for one in event.debug_annotations}
            open_[event.track_uuid].append((at, event.name, {**said, "flow_ids": list(event.flow_ids)}))
        elif event.type == kinds.TYPE_SLICE_END:
            since, name, said = open_[event.track_uuid].pop()
            track.slices.append((since, at, name, said))
        elif event.type == kinds.TYPE_INSTANT:
            track.instants.append((at, event.name))
        else:
            assert event.type == kinds.TYPE_COUNTER
            track.values.append((at, event.counter_value))
    assert not any(open_.values()), "each slice ends"
    return dict(tracks)


def trace(folder: Path, text: str, **chosen: Any) -> tuple[fl.Result, dict[str, Track]]:
    (folder / "x.toml").write_text(text)
    result = fl.run(folder / "x.toml", trace=fl.Timeline(folder / "x.pftrace", **chosen))
    return result, decode(folder / "x.pftrace")


def named(one: tuple[int, int, str, dict[str, Any]]) -> tuple[int, int, str]:
    """A slice without what else is said of it."""
    return one[:3]


def test_flows_have_states_windows_and_an_end(tmp_path: Path) -> None:
    result, tracks = trace(tmp_path, INCAST)
    flow = "flows/flow 2: host3 to host0, 40000 B, answers"
    ((since, until, name, _),) = tracks[flow].slices
    assert (since, name) == (0, "until complete")
    assert until == int(float(result.flows["fct_us"][2]) * 1000)
    states = [name for _, _, name, _ in tracks[f"{flow}/state"].slices]
    assert states[:2] == ["handshake", "slow start"]
    waits = tracks[f"{flow}/waiting for"].slices
    assert waits[0][2] == "handshake"
    assert all(one[1] == other[0] for one, other in itertools.pairwise(waits)), "without gaps"
    assert tracks[f"{flow}/cwnd"].values[0][1] == 10
    assert max(value for _, value in tracks[f"{flow}/in flight"].values) >= 10
    assert tracks[f"{flow}/in flight"].values[-1][1] == 0


def test_queues_and_drops_are_those_of_the_ports(tmp_path: Path) -> None:
    result, tracks = trace(tmp_path, INCAST)
    ports = result.ports.set_index("name")
    most = max(value for _, value in tracks["ports/host0.port/queue"].values)
    assert 14 * 1500 <= most <= 17 * 1500
    assert tracks["ports/host0.port/queue"].values[-1][1] == 0
    assert len(tracks["ports/host0.port/drops"].instants) == ports["dropped"]["host0.port"] > 0


def test_a_timeline_changes_no_result(tmp_path: Path) -> None:
    traced, _ = trace(tmp_path, INCAST + ACCOUNT)
    plain = fl.run(tmp_path / "x.toml")
    assert traced.manifest["digest"] == plain.manifest["digest"]
    assert traced.table("account").equals(plain.table("account"))


def test_arrows_lead_along_the_critical_path(tmp_path: Path) -> None:
    result, tracks = trace(tmp_path, INCAST + ACCOUNT)
    events = result.table("account_events")
    flow = int(events["flow"][0])
    paths = {name: track for name, track in tracks.items() if name.endswith(f"critical path of flow {flow}")}
    assert any(name.startswith("ports/host0.port/") for name in paths)
    assert any(name.startswith("ports/host0.nic/") for name in paths)
    steps = sorted((step for track in paths.values() for step in track.slices), key=lambda step: step[:2])
    assert [step[2] for step in steps] == list(events["cause"])
    assert [step[3]["time_ps"] for step in steps] == list(events["time_ps"])
    assert all(step[3]["flow_ids"] == [flow + 1] for step in steps)
    assert all(one[1] == other[0] for one, other in itertools.pairwise(steps)), "without gaps"


def test_chosen_flows_and_times_make_it_small(tmp_path: Path) -> None:
    _, tracks = trace(tmp_path, INCAST, flows=[1], start="50us", end="90us")
    flows = {name.split("/")[1] for name in tracks if name.startswith("flows/")}
    assert flows == {"flow 1: host2 to host0, 40000 B, answers"}
    ports = {name.split("/")[1] for name in tracks if name.startswith("ports/")}
    assert ports <= {"host2.nic", "host2.port", "host0.nic", "host0.port"} and "host0.port" in ports
    times = [since for track in tracks.values() for since, *_ in track.slices]
    times += [at for track in tracks.values() for at, _ in (*track.instants, *track.values)]
    ends = [until for track in tracks.values() for _, until, *_ in track.slices]
    assert min(times) == 50_000 and max(times + ends) == 90_000


PAUSED = INCAST.replace("queue = 16", "").replace("[switch]", '[pfc]\nxoff = "30kB"').replace("40kB", "400kB")


def test_pauses_are_those_of_the_table(tmp_path: Path) -> None:
    result, tracks = trace(tmp_path, PAUSED)
    pauses = {name: track.slices for name, track in tracks.items() if "/pauses of class" in name}
    ports = result.table("pauses")
    assert sum(map(len, pauses.values())) == ports["pauses"].sum() > 0
    assert {name.split("/")[1] for name in pauses} == set(ports["name"][ports["pauses"] > 0])


RACKS = f"""
duration = "2ms"
{networks.RACKS}
[[workload]]
kind = "hdfs"
files = 2
file_size = "30kB"
block = "30kB"
chunk = "10kB"
replication = 2
"""


def test_circuits_have_nights_and_days_and_hosts_their_messages(tmp_path: Path) -> None:
    result, tracks = trace(tmp_path, RACKS)
    circuit = tracks["circuits/rack 1 to rack 0"].slices
    assert [name for _, _, name, _ in circuit[:2]] == ["night", "day"]
    assert [(until - since) for since, until, *_ in circuit[:2]] == [20_000, 100_000]
    assert any(name.startswith("ports/voq.") for name in tracks)
    messages = [s for name, track in tracks.items() if name.endswith("/messages") for s in track.slices]
    assert len(messages) == result.table("jobs")["messages"].sum()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--trace-flows", "9"], "there is no flow 9: the experiment has flows 0 to 3"),
        (["--trace-flows", "a"], "--trace-flows a: numbers of flows are needed, such as 0,3-5"),
        (["--trace-span", "1ms"], "--trace-span 1ms: FROM:UNTIL is needed, such as 1ms:2ms"),
        (["--trace-span", "2ms:1ms"], "is empty: let it end after it begins"),
        (["--trace-span", "1s:2s"], "is empty: let it end after it begins, within the run"),
        (["--trace-span", "later:"], "timeline: "),
        (["--seeds", "2"], "--trace is for one run: take it out, or --seeds"),
        (["--set", "hosts.kind=dilated"], "hosts in dilated time have no timeline"),
    ],
)
def test_wrong_options_say_what_would_be_right(tmp_path: Path, options: list[str], message: str) -> None:
    (tmp_path / "x.toml").write_text(INCAST)
    command = ["run", str(tmp_path / "x.toml"), "--out", str(tmp_path / "result"), *options]
    with pytest.raises(fl.FirstlightError, match=message):
        app([*command, "--trace", str(tmp_path / "x.pftrace")], standalone_mode=False)
    assert not (tmp_path / "x.pftrace").exists()


def test_command_writes_the_chosen_part(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.toml").write_text(INCAST)
    file = tmp_path / "x.pftrace"
    command = ["run", str(tmp_path / "x.toml"), "--out", str(tmp_path / "result"), "--trace", str(file)]
    app([*command, "--trace-flows", "0,2-3", "--trace-span", ":60us"], standalone_mode=False)
    assert f"timeline: {file}" in capsys.readouterr().out
    flows = {name.split("/")[1].split(":")[0] for name in decode(file) if name.startswith("flows/")}
    assert flows == {"flow 0", "flow 2", "flow 3"}
    with pytest.raises(fl.PlanError, match="need --trace FILE"):
        app(["run", str(tmp_path / "x.toml"), "--trace-flows", "0"], standalone_mode=False)


LINUX = (
    INCAST
    + """
[[program]]
on = "host1"
run = "sleep 0.0001; echo done"
[measure]
account = true
account_events = 1
tcp_info = "10us"
"""
)


def test_linux_hosts_have_a_timeline(tmp_path: Path, kernel: Kernel) -> None:
    (tmp_path / "x.toml").write_text(LINUX)
    run = partial(fl.run, tmp_path / "x.toml", {"hosts.kind": "linux"})
    result = run(trace=tmp_path / "x.pftrace")
    assert result.digest == run().digest
    assert [file.name for file in tmp_path.iterdir() if file.name.startswith(".")] == []
    tracks = decode(tmp_path / "x.pftrace")
    assert (
        len(tracks["ports/host0.port/drops"].instants)
        == result.ports.set_index("name")["dropped"]["host0.port"]
        > 0
    )
    flow = "flows/flow 2: host3 to host0, 40000 B, answers"
    ((_, until, name, _),) = tracks[flow].slices
    assert (until, name) == (int(float(result.flows["fct_us"][2]) * 1000), "until complete")
    samples = result.table("tcp_info").query("flow == 2 and time_us * 1000 < @until")
    windows = tracks[f"{flow}/cwnd"].values
    for at, cwnd in zip(samples["time_us"].tolist(), samples["cwnd_packets"].tolist(), strict=True):
        assert [value for since, value in windows if since <= round(at * 1000)][-1] == cwnd
    in_flight = samples["unacked"] + samples["retrans"] - samples["sacked"] - samples["lost"]
    assert max(value for _, value in tracks[f"{flow}/in flight"].values) == in_flight.max() > 0
    assert tracks[f"{flow}/in flight"].values[-1] == (until, 0)
    assert "slow start" in {name for _, _, name, _ in tracks[f"{flow}/state"].slices}
    events = result.table("account_events")
    path = f"critical path of flow {events['flow'][0]}"
    steps = sorted(
        step for name, track in tracks.items() if name.endswith(path) for step in map(named, track.slices)
    )
    assert [name for *_, name in steps] == list(events["cause"])
    ((since, until, command, said),) = next(
        track.slices for name, track in tracks.items() if name.startswith("hosts/host1/program ")
    )
    assert (since, command, said["exit code"]) == (0, "sleep 0.0001; echo done", 0)
    assert 100_000 <= until < 1_000_000


def test_a_linux_run_that_fails_leaves_no_timeline(tmp_path: Path, kernel: Kernel) -> None:
    (tmp_path / "x.toml").write_text(LINUX.replace("echo done", "exit 3"))
    for flows in ([9], None):
        with pytest.raises(fl.FirstlightError, match="there is no flow 9" if flows else "3"):
            fl.run(
                tmp_path / "x.toml",
                {"hosts.kind": "linux"},
                trace=fl.Timeline(tmp_path / "x.pftrace", flows=flows),
            )
        assert [file.name for file in tmp_path.iterdir()] == ["x.toml"]
    with pytest.raises(fl.RunError, match="cannot write the timeline"):
        fl.run(tmp_path / "x.toml", {"hosts.kind": "linux"}, trace=tmp_path / "none" / "x.pftrace")


def test_unwritable_timeline_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text(INCAST)
    with pytest.raises(fl.RunError, match="cannot write the timeline"):
        fl.run(tmp_path / "x.toml", trace=tmp_path / "none" / "x.pftrace")


MOST_MEMORY = """
import resource, sys
import firstlight as fl
fl.run(sys.argv[1], {"duration": sys.argv[2]}, trace=sys.argv[3])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def test_a_longer_timeline_takes_no_more_memory(tmp_path: Path) -> None:
    file = tmp_path / "out.pftrace"

    def most(duration: str) -> int:
        words = [sys.executable, "-c", MOST_MEMORY, str(INCAST_BENCH), duration, str(file)]
        return int(subprocess.run(words, check=True, capture_output=True, text=True).stdout) * 1024

    short, long = most("10ms"), most("1s")
    assert file.stat().st_size > 20_000_000
    assert long < short + file.stat().st_size / 2
