"""Hosts in dilated time: real programs on this machine's kernel, at factors that a busy machine can keep."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import firstlight as fl
import pytest
from etalon import LOOP, fabric
from firstlight.dilated import controls, machine
from firstlight.errors import RunError
from firstlight.linux import installed
from marked_wire import unfit
from writers import MSS, demand, writers

lacking = [f"{check.name}: {check.found}" for check in machine.examine() if check.needed and not check.ok]
pytestmark = pytest.mark.skipif(bool(lacking), reason=f"`firstlight doctor` says why: {', '.join(lacking)}")

STAR = """
duration = "{duration}"
time_scale = {factor}
[fabric]
kind = "star"
hosts = 3
[hosts]
kind = "dilated"
rate = "10Gbps"
delay = "100us"
[switch]
queue = 100
"""


def experiment(folder: Path, more: str, *, duration: str = "1s", factor: int = 50) -> Path:
    """A run ends with its programs and flows: the duration is for a machine that is busy with other work."""
    file = folder / f"{folder.name}.toml"
    file.write_text(STAR.format(duration=duration, factor=factor) + more)
    return file


def program(name: str, command: str, on: str = "host0", more: str = "") -> str:
    return f'[[program]]\non = "{on}"\nname = "{name}"\nrun = """{command}"""\n{more}\n'


def test_a_round_trip_takes_what_its_links_take(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four links of 100 us: no more than the machine adds, divided by the factor, and never less. The path of
    the library that gives programs dilated time may have blanks and colons."""
    library = tmp_path / "a blank, and: a colon" / "libvt.so"
    library.parent.mkdir()
    monkeypatch.setattr(installed, "LIBVT", shutil.copy(installed.LIBVT, library))
    result = fl.run(experiment(tmp_path, program("ping", "ping -c 5 -i 0.002 host1")))
    output = result.programs["ping"]
    times = [float(line.split("time=")[1].split()[0]) for line in output.splitlines() if "time=" in line]
    assert len(times) == 5 and all(0.4 <= time < 20 for time in times), output
    assert result.manifest["conservation"]["ok"]
    assert result.manifest["hosts"]["fidelity"]["tdf"] == 50


def test_flows_carry_their_bytes(tmp_path: Path) -> None:
    flows = """
[[flows]]
from = "host0"
to = "host2"
cc = "cubic"
size = "2MB"
[[flows]]
from = "host1"
to = "host2"
cc = "reno"
size = "1MB"
start = "1ms"
"""
    result = fl.run(experiment(tmp_path, flows))
    assert result.manifest["finished"]
    assert list(result.table("flows")["bytes_received"]) == [2_000_000, 1_000_000]
    # No flow is faster than its link, of which headers take a part.
    assert (result.table("flows")["fct_us"] > [1600, 800]).all()


def test_retcp_comes_and_goes_with_a_run(tmp_path: Path) -> None:
    """A congestion control that the kernel does not have, on two hosts that negotiate ECN."""
    if unfit_for_bpf := unfit():
        pytest.skip(unfit_for_bpf)
    flow = '[[flows]]\nfrom = "host0"\nto = "host1"\ncc = "retcp"\nsize = "200kB"\n'
    look = program("look", "cat /proc/sys/net/ipv4/tcp_available_congestion_control")
    result = fl.run(experiment(tmp_path, flow + look))
    assert result.manifest["finished"] and "retcp" in result.programs["look"].split()
    assert "retcp" not in controls.available()


def test_a_congestion_control_that_the_machine_lacks_is_named(tmp_path: Path) -> None:
    flow = '[[flows]]\nfrom = "host0"\nto = "host1"\ncc = "cdg"\nsize = "200kB"\n'
    if "cdg" in controls.available():
        pytest.skip("this machine's kernel has every congestion control")
    with pytest.raises(RunError, match=r"no congestion control 'cdg', but .*reno.*: use one of them"):
        fl.run(experiment(tmp_path, flow))


def test_programs_live_in_dilated_time_on_their_own_hosts(tmp_path: Path) -> None:
    """A program sees its clock, the hosts' names, and its own devices alone."""
    commands = program("clock", "date +%s%N; sleep 0.005; date +%s%N") + program(
        "place", "getent hosts host1; ip -o link"
    )
    result = fl.run(experiment(tmp_path, commands))
    before, after = (int(line) for line in result.programs["clock"].split())
    assert 5_000_000 <= after - before < 20_000_000
    place = result.programs["place"]
    assert "10.0.0.2" in place and "eth0" in place and place.count("link/") == 2, place


def test_a_program_that_cannot_be_dilated_is_refused_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "static.c").write_text("int main(void) { return 0; }\n")
    subprocess.run(["cc", "-static", "-o", tmp_path / "static", tmp_path / "static.c"], check=True)
    file = experiment(tmp_path, program("static", str(tmp_path / "static")))
    with pytest.raises(RunError, match=r"(?s)program static on host0 .* is linked statically, so that LibVT"):
        fl.run(file)
    undilated = fl.run(file, {"time_scale": 1, "duration": "20s"})
    assert undilated.programs["static"] == "", "no time, nothing to refuse"


def test_a_run_that_strays_is_stored_and_marked(tmp_path: Path) -> None:
    """Links of no length: their round trip is a microsecond, of which no machine keeps a tenth."""
    ping = program("ping", "ping -c 20 -i 0.0002 host1", more="server = true")  # it is late too
    file = experiment(tmp_path, ping, factor=1)
    result = fl.run(file, {"hosts.delay": "0s", "duration": "20ms"})
    assert result.invalid and "late (p99: " in result.invalid[0], result.invalid
    assert "would have been enough" in result.invalid[-1]


SHARE = """\
import pathlib
rows = (line.strip().split(":", 2) for line in open("/proc/self/cgroup"))
paths = {kinds: path for _, kinds, path in rows}
one = [path for kinds, path in paths.items() if "cpu" in kinds.split(",")]
path = one[0] if one else paths[""]
mounts = [line.split() for line in open("/proc/self/mounts")]
kind = (lambda m: m[2] == "cgroup" and "cpu" in m[3].split(",")) if one else (lambda m: m[2] == "cgroup2")
group = pathlib.Path(next(m[1] for m in mounts if kind(m)) + path)
while not group.is_dir():  # a path as another process sees it
    group = group.parent
files = ["cpu.cfs_quota_us", "cpu.cfs_period_us"] if one else ["cpu.max"]
print(group.name, *(word for file in files for word in (group / file).read_text().split()))
"""


@pytest.mark.parametrize(
    ("cores", "share"), [(None, ("-1", "max")), (2.5, ("1000", "20000")), (20, ("4000", "10000"))]
)
def test_hosts_have_the_cores_that_they_are_given(
    tmp_path: Path, cores: float | None, share: tuple[str, str]
) -> None:
    """Without a limit, or with one in the hosts' own time, which is 50 times slower than the machine's.

    Not less than a twentieth of a processor: with a hundredth, Python takes a minute or four to start.
    """
    if limits := machine.limits().todo:
        pytest.skip(limits)
    (tmp_path / "share.py").write_text(SHARE)
    command = f"{sys.executable} {tmp_path / 'share.py'}"
    file = experiment(tmp_path, program("first", command) + program("second", command, on="host1"))
    result = fl.run(file, {} if cores is None else {"hosts.cores": cores})
    for host, name in enumerate(("first", "second")):
        group, *limit = result.programs[name].split()
        assert group == f"host{host}"
        assert (limit[0] in share) if cores is None else (tuple(limit) == share)
    assert groups() == []


# ---- What is left behind: nothing ----


def engines() -> list[int]:
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (entry / "comm").read_text().strip().startswith(("firstlight-dil", "firstlight-gue")):
                found.append(int(entry.name))
    return found


def groups() -> list[Path]:
    return [path for path in Path("/sys/fs/cgroup").glob("**/firstlight-*") if path.is_dir()]


LONG = program("long", "exec sleep 1000", more="server = true") + program(
    "daemon",
    "setsid sh -c 'trap : TERM INT HUP; while :; do sleep 0.001; done' & sleep 1000",
    more="server = true",
)


@contextlib.contextmanager
def started(file: Path) -> Iterator["subprocess.Popen[str]"]:
    """A run in a process of its own, under way."""
    words = [sys.executable, "-c", "import sys, firstlight; firstlight.run(sys.argv[1])", str(file)]
    # A job in the background of a shell ignores SIGINT, and what it starts inherits that.
    process = subprocess.Popen(
        words,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        deadline = time.monotonic() + 60
        while not any("sleep 0.001" in line for line in commands()):
            assert time.monotonic() < deadline and process.poll() is None
            time.sleep(0.02)
        yield process
    finally:
        process.kill()
        process.communicate()


def commands() -> list[str]:
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    return found


def gone(within: float = 20) -> bool:
    deadline = time.monotonic() + within
    while engines() or any("sleep 0.001" in line for line in commands()):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_of_a_run_that_is_ended(tmp_path: Path, ending: signal.Signals) -> None:
    file = experiment(tmp_path, LONG, duration="10s")
    with started(file) as process:
        assert groups() and engines()
        process.send_signal(ending)
        process.wait(30)
        assert gone()
    if ending != signal.SIGINT:
        fl.run(experiment(tmp_path, program("true", "true")))  # the next one clears what could not be cleared
    assert groups() == []


def test_nothing_is_left_of_an_engine_that_is_killed(tmp_path: Path) -> None:
    file = experiment(tmp_path, LONG, duration="10s")
    with started(file) as process:
        for engine in engines():
            os.kill(engine, signal.SIGKILL)
        _, errors = process.communicate(timeout=60)
        assert "SIGKILL" in errors and gone()
    fl.run(experiment(tmp_path, program("true", "true")))
    assert groups() == []


# ---- Demand ----


def test_programs_declare_the_same_demand_as_in_virtual_time(tmp_path: Path) -> None:
    """Counted by the library here and by the kernel's driver there: a write that blocks, one that is not
    taken whole, and a connection that is given up."""
    programs = writers(tmp_path, slow=10, stay=False)
    slow: dict[str, object] = {"packet.rate": "10Mbps", "schedule.week": "20ms"}
    declared = {}
    for factor in (1, 100):
        file = tmp_path / f"writes{factor}.toml"
        file.write_text(f'duration = "98ms"\ntime_scale = {factor}\n{fabric()}{LOOP}{programs}')
        result = fl.run(file, {**slow, "hosts.kind": "linux" if factor == 1 else "dilated"})
        heard = demand(result)
        taken = int(result.programs["partial"])
        assert heard[2, 2, 0] == taken - MSS
        assert heard.get((3, 2, 0), 0) == 0
        declared[factor] = heard[2, 0, 1]
    assert declared[1] == declared[100] == 4_000_000 - MSS
