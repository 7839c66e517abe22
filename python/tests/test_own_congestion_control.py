"""A congestion control of one's own: a Python class, a shared object of a crate, and their mistakes."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import firstlight as fl
import pytest
from firstlight.errors import RunError, SpecError
from firstlight.linux.kernels import Kernel

ROOT = Path(__file__).resolve().parents[2]

BOTTLENECK = """
duration = "200ms"
[fabric]
kind = "dumbbell"
left = 2
right = 2
[hosts]
rate = "10Gbps"
delay = "20us"
mtu = "1500B"
[links]
rate = "1Gbps"
[switch]
queue = 30
[[flows]]
from = "host0"
to = "host2"
[[flows]]
from = "host1"
to = "host3"
start = "3ms"
"""


class Reno(fl.CongestionControl):
    """NewReno (RFC 5681), written out."""

    def grow(self, window: fl.Window, ack: fl.Ack) -> None:
        left = window.slow_start(ack.delivered) if window.in_slow_start else ack.delivered
        if left > 0:
            window.additive_increase(window.cwnd, left)

    def ssthresh(self, window: fl.Window, marked: bool) -> int:
        return max(window.cwnd // 2, window.floor)


class Gentle(fl.CongestionControl):
    """The one of `firstlight cc new`."""

    def ssthresh(self, window: fl.Window, marked: bool) -> int:
        return max(window.cwnd * 3 // 4, window.floor)


@pytest.fixture
def experiment(tmp_path: Path) -> Path:
    file = tmp_path / "bottleneck.toml"
    file.write_text(BOTTLENECK)
    return file


@pytest.fixture(scope="module")
def crate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The crate of `firstlight cc new`, built."""
    folder = tmp_path_factory.mktemp("crate")
    command("cc", "new", "mine", cwd=folder)
    build(folder / "mine")
    return folder / "mine"


def test_a_class_that_no_flow_uses_is_warned_of(experiment: Path) -> None:
    def warnings(overrides: dict[str, object]) -> list[str]:
        result = fl.run(experiment, {"duration": "5ms", **overrides}, congestion_control={"gentle": Gentle})
        return [warning for warning in result.warnings if "gentle" in warning]

    (warning,) = warnings({"tcp.cc": "newreno"})
    assert warning.startswith("no flow uses the congestion control gentle: name it, ")
    assert not warnings({"tcp.cc": "gentle"})
    assert not warnings({"flows.0.cc": "gentle"})
    assert not warnings({"flows.1.cc": "gentle", "tcp.cc": "dctcp", "switch.ecn": 10})


def test_a_class_that_echoes_marks_precisely_negotiates_ecn(experiment: Path) -> None:
    class Marked(Gentle):
        ecn = "precise"

    def warnings(cc: type, overrides: dict[str, object]) -> list[str]:
        settings = {"duration": "5ms", "tcp.cc": "mine", **overrides}
        result = fl.run(experiment, settings, congestion_control={"mine": cc})
        return [warning for warning in result.warnings if "mark" in warning]

    (warning,) = warnings(Gentle, {"switch.ecn": 10})
    assert warning.startswith("the ECN threshold never marks a packet: no flow negotiates ECN")
    assert not warnings(Marked, {"switch.ecn": 10})
    (warning,) = warnings(Marked, {})
    assert warning.startswith("mine flows never see a mark: queues of switches have no ECN threshold")


def command(*words: str, cwd: Path, code: int = 0) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "firstlight", *words], cwd=cwd, capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr


def build(crate: Path) -> Path:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("CARGO_")}
    # The packages of the project's own lock file are on this machine.
    environment |= {"HOME": os.environ["HOME"], "CARGO_TARGET_DIR": str(crate / "target")}
    for key in ("CARGO_HOME", "CARGO_REGISTRIES_CRATES_IO_PROTOCOL"):
        if key in os.environ:
            environment[key] = os.environ[key]
    subprocess.run(["cargo", "build", "--quiet", "--release"], cwd=crate, env=environment, check=True)
    return crate / f"target/release/lib{crate.name}.so"


def digest(file: Path, cc: str, **classes: type) -> str:
    result = fl.run(file, {"tcp.cc": cc}, congestion_control=classes)
    found: str = result.manifest["digest"]
    return found


def test_reno_in_python_is_newreno_packet_for_packet(experiment: Path) -> None:
    assert digest(experiment, "mine", mine=Reno) == digest(experiment, "newreno")


def test_rust_and_python_give_the_same_packets(experiment: Path, crate: Path) -> None:
    mine = crate / "target/release/libmine.so"
    ours = digest(experiment, str(mine))
    assert ours == digest(experiment, "gentle", gentle=Gentle)
    assert ours != digest(experiment, "newreno")


def test_the_kernel_module_of_the_how_to_sends_what_the_class_sends(
    experiment: Path, tmp_path: Path, kernel: Kernel
) -> None:
    page = (ROOT / "docs" / "how-to" / "write-a-linux-control.md").read_text()
    (tmp_path / "gentle").mkdir()
    for name in ("gentle/Kbuild", "gentle/gentle.c"):
        (block,) = re.findall(rf"^<!-- file: {name} -->\n```\w+\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
        (tmp_path / name).write_text(block)
    on_linux = {"hosts.kind": "linux", "linux.modules": ["./gentle"], "tcp.cc": "gentle"}
    columns = ["packets_sent", "retransmits", "bytes_acked", "bytes_received", "cwnd_packets"]
    simulated = fl.run(experiment, {"tcp.cc": "gentle"}, congestion_control={"gentle": Gentle})
    module = fl.run(experiment, on_linux)
    assert simulated.flows["retransmits"].sum() > 0
    assert simulated.flows[columns].equals(module.flows[columns])
    assert simulated.ports.equals(module.ports) and simulated.ports["dropped"].sum() > 0
    newreno = fl.run(experiment, {"tcp.cc": "newreno"}).flows
    assert not simulated.flows[columns].equals(newreno[columns]), "the example is not NewReno"


def test_a_flow_may_have_its_own(experiment: Path) -> None:
    result = fl.run(
        experiment, {"flows.1.cc": "gentle", "tcp.cc": "newreno"}, congestion_control={"gentle": Gentle}
    )
    assert list(result.flows["cc"]) == ["newreno", "gentle"]


def test_the_manifest_names_what_ran(experiment: Path, crate: Path) -> None:
    (experiment.parent / "libmine.so").write_bytes((crate / "target/release/libmine.so").read_bytes())
    result = fl.run(experiment, {"tcp.cc": "./libmine.so"})
    assert len(result.manifest["inputs"]["./libmine.so"]) == 32
    result = fl.run(experiment, {"tcp.cc": "gentle"}, congestion_control={"gentle": Gentle})
    assert len(result.manifest["congestion_control"]["gentle"]) == 32


def test_pacing_holds_packets_back(experiment: Path) -> None:
    class Slow(Reno):
        def pace(self, window: fl.Window, size: int) -> float:
            return 1000.0

    result = fl.run(experiment, {"tcp.cc": "slow"}, congestion_control={"slow": Slow})
    # One packet of 1448 bytes in each millisecond of each flow.
    assert all(150 * 1448 < received < 201 * 1448 for received in result.flows["bytes_received"])


@pytest.mark.parametrize("wait", [float("nan"), float("inf"), -1.0, 1e300, None, "soon"])
def test_what_no_wait_can_be(experiment: Path, wait: object) -> None:
    class Wrong(Reno):
        def pace(self, window: fl.Window, size: int) -> float:
            return wait  # type: ignore[return-value]

    with pytest.raises(RunError, match=rf"pace returned {re.escape(repr(wait))}: expected a wait"):
        fl.run(experiment, {"tcp.cc": "wrong"}, congestion_control={"wrong": Wrong})


def test_an_exception_ends_the_run_with_its_traceback(experiment: Path) -> None:
    class Broken(fl.CongestionControl):
        def ssthresh(self, window: fl.Window, marked: bool) -> int:
            return {"a": 1}["b"]

    with pytest.raises(RunError, match=r"'broken' failed: \nTraceback(.|\n)*in ssthresh(.|\n)*KeyError: 'b'"):
        fl.run(experiment, {"tcp.cc": "broken"}, congestion_control={"broken": Broken})


@pytest.mark.parametrize(
    ("threshold", "says"),
    [
        (0, "after ssthresh its result is 0: it is at least 1 packet"),
        (float("nan"), "TypeError: ssthresh returned nan: expected a whole number of packets"),
        (-3, "TypeError: ssthresh returned -3: expected a whole number of packets"),
        (1 << 40, "it is at most 2\\^32 - 1 packets"),
        (None, "ssthresh returned None"),
    ],
)
def test_what_no_threshold_can_be(experiment: Path, threshold: object, says: str) -> None:
    class Wrong(fl.CongestionControl):
        def ssthresh(self, window: fl.Window, marked: bool) -> int:
            return threshold  # type: ignore[return-value]

    with pytest.raises(RunError, match=says):
        fl.run(experiment, {"tcp.cc": "wrong"}, congestion_control={"wrong": Wrong})


def test_a_window_of_nothing_or_not_a_number(experiment: Path) -> None:
    class Nothing(fl.CongestionControl):
        def on_ack(self, window: fl.Window, ack: fl.Ack) -> None:
            window.cwnd = 0

    class NotANumber(fl.CongestionControl):
        def on_ack(self, window: fl.Window, ack: fl.Ack) -> None:
            window.cwnd = float("nan")  # type: ignore[assignment]

    with pytest.raises(RunError, match=r"after on_ack window\.cwnd is 0: it is at least 1 packet"):
        fl.run(experiment, {"tcp.cc": "own"}, congestion_control={"own": Nothing})
    with pytest.raises(RunError, match=r"window\.cwnd = float(.|\n)*TypeError"):
        fl.run(experiment, {"tcp.cc": "own"}, congestion_control={"own": NotANumber})


def test_names_and_classes_that_will_not_do(experiment: Path) -> None:
    class Empty:
        pass

    for classes, says in [
        ({"cubic": Gentle}, "Firstlight has a control of this name"),
        ({"Mine": Gentle}, "lower-case letters"),
        ({"mine": Gentle()}, "expected a class"),
        ({"mine": Empty}, "the class has none of the methods on_established, on_ack"),
    ]:
        with pytest.raises(SpecError, match=says):
            fl.run(experiment, congestion_control=classes)  # type: ignore[arg-type]
    with pytest.raises(SpecError, match=r"tcp\.cc.*'mien'.*cubic"):
        fl.run(experiment, {"tcp.cc": "mien"}, congestion_control={"mine": Gentle})


def test_files_that_are_no_controller(experiment: Path) -> None:
    for name, says in [
        ("./missing.so", "missing.so: No such file"),
        ("./text.so", "cannot be loaded as a shared object"),
    ]:
        (experiment.parent / "text.so").write_text("no object")
        with pytest.raises(SpecError, match=rf"tcp\.cc.*{says}"):
            fl.run(experiment, {"tcp.cc": name})
    source = experiment.parent / "other.c"
    source.write_text("int firstlight;\n")
    subprocess.run(["cc", "-shared", "-o", source.with_suffix(".so"), source], check=True)
    with pytest.raises(SpecError, match="has no controller: write firstlight_cc::congestion_control"):
        fl.run(experiment, {"tcp.cc": "./other.so"})
    source.write_text("unsigned FIRSTLIGHT_CONGESTION_CONTROL[16] = {99};\n")
    subprocess.run(["cc", "-shared", "-o", experiment.parent / "newer.so", source], check=True)
    with pytest.raises(SpecError, match="was built for version 99 of the interface"):
        fl.run(experiment, {"tcp.cc": "./newer.so"})


def test_linux_hosts_have_none(experiment: Path, crate: Path) -> None:
    with pytest.raises(SpecError, match=r"tcp\.cc: a control of your own runs where all hosts are simulated"):
        fl.inspect(experiment, {"tcp.cc": str(crate / "target/release/libmine.so"), "hosts.kind": "linux"})


def test_check_accepts_the_example_and_names_what_breaks_a_property(crate: Path, tmp_path: Path) -> None:
    assert "no property is broken" in command("cc", "check", "target/release/libmine.so", cwd=crate)
    assert "no property is broken" in command("cc", "check", crate.name, "--cases", "9", cwd=crate.parent)
    command("cc", "new", "later", cwd=tmp_path)
    assert "not built yet: cargo build" in command("cc", "check", "later", cwd=tmp_path, code=2)
    (tmp_path / "own.py").write_text(
        "class Gentle:\n"
        "    def ssthresh(self, window, marked):\n"
        "        return max(window.cwnd * 3 // 4, window.floor)\n"
        "class Greedy:\n"
        "    def grow(self, window, ack):\n"
        "        window.cwnd += 2 * ack.delivered\n"
    )
    assert "no property is broken" in command("cc", "check", "own.py:Gentle", "--cases", "50", cwd=tmp_path)
    said = command("cc", "check", "own.py:Greedy", "--cases", "50", cwd=tmp_path, code=2)
    assert "faster than slow start" in said
    assert "own.py: has no class Mine" in command("cc", "check", "own.py:Mine", cwd=tmp_path, code=2)
    assert "name a shared object" in command("cc", "check", "own.txt", cwd=tmp_path, code=2)


def test_a_panic_is_the_run_s_error(experiment: Path, tmp_path: Path) -> None:
    command("cc", "new", "loud", cwd=tmp_path)
    source = tmp_path / "loud/src/lib.rs"
    text = source.read_text()
    source.write_text(
        text.replace(
            "(window.cwnd * 3 / 4)", 'assert!(window.cwnd < 3, "too wide: {}", window.cwnd);\n(window.cwnd)'
        )
    )
    mine = build(tmp_path / "loud")
    with pytest.raises(RunError, match=r"libloud\.so' failed: it panicked: too wide: \d+"):
        fl.run(experiment, {"tcp.cc": str(mine)})
    said = command("cc", "check", str(mine), cwd=tmp_path, code=2)
    assert "it panicked: too wide" in said


def test_new_overwrites_nothing(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    assert "exists; choose another name" in command("cc", "new", "mine", cwd=tmp_path, code=2)
    assert "name the crate with" in command("cc", "new", "Mine!", cwd=tmp_path, code=2)


def test_a_python_class_does_not_go_into_a_bundle(experiment: Path, tmp_path: Path) -> None:
    fl.run(experiment, {"tcp.cc": "gentle"}, out=tmp_path / "r", congestion_control={"gentle": Gentle})
    said = command("bundle", str(tmp_path / "r"), cwd=tmp_path, code=2)
    assert "its congestion control gentle is a Python class" in said


def test_the_page_has_the_arguments_of_each_method() -> None:
    source = ast.parse((ROOT / "python/firstlight/congestion.py").read_text(encoding="utf-8"))
    page = (ROOT / "docs/models/own-congestion-control.md").read_text(encoding="utf-8")
    classes = [node for node in ast.walk(source) if isinstance(node, ast.ClassDef)]
    methods = [node for one in classes for node in ast.walk(one) if isinstance(node, ast.FunctionDef)]
    told = [f"`{m.name}({', '.join(a.arg for a in m.args.args if a.arg != 'self')})`" for m in methods]
    assert len(told) == 10
    assert [call for call in told if f"| {call} |" not in page] == []
