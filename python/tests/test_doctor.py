"""The output of ``firstlight doctor``."""

import hashlib
import json
import shutil
from pathlib import Path

import pytest
from conftest import Command
from firstlight.dilated import machine
from firstlight.linux import doctor, hadoop, installed, kernels, tools


def test_doctor_lists_what_this_machine_can_run(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FIRSTLIGHT_CACHE", str(tmp_path))
    done = command("doctor")
    assert done.returncode == 0, done.stderr
    assert "simulated hosts: yes" in done.stdout
    assert "Linux hosts, virtual time: no" in done.stdout
    assert "firstlight kernel build" in done.stdout
    assert "Linux hosts, dilated time: " in done.stdout


def test_as_json_it_is_complete(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIRSTLIGHT_CACHE", str(tmp_path))
    done = command("doctor", "--json")
    told = json.loads(done.stdout)
    assert told["able"]["simulated hosts"] is True
    for check in told["checks"]:
        assert check["ok"] or check["todo"], f"{check['name']} is missing, and nobody says what to do"


def test_a_missing_part_has_its_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIRSTLIGHT_CACHE", str(tmp_path))
    monkeypatch.setattr(tools, "PATH", str(tmp_path))
    monkeypatch.setattr(installed, "ENGINE", tmp_path / "engine.so")
    checks = {check.name: check for check in doctor.virtual()}
    assert checks["tools to build kernels"].todo.startswith("apt install ")
    assert "bison" in checks["tools to build kernels"].found
    assert not checks["engine for kernels"].ok
    assert not checks["kernel"].ok and "tick of 4 ms" in checks["kernel"].found
    assert not checks["iproute2"].ok and not checks["iproute2"].needed
    assert not checks["DX"].ok and not checks["DX"].needed and checks["DX"].todo == "firstlight kernel build"


@pytest.mark.usefixtures("kernel")
def test_a_kernel_with_dx_is_told() -> None:
    check = doctor.dx()
    assert check.ok and kernels.find(250).version in check.found


@pytest.mark.parametrize(("flags", "traps"), [("fpu cpuid_fault tsc", True), ("fpu cpuid tsc", False)])
def test_a_machine_that_shows_its_processor_is_told(
    flags: str, traps: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "_read", lambda file: f"model name\t: x\nflags\t\t: {flags}\nbugs\t\t:\n")
    check = doctor.cpuid()
    assert (check.ok, check.needed, bool(check.todo)) == (traps, False, not traps)


def test_only_needed_checks_decide() -> None:
    checks = [
        doctor.Check("a", "x", True, ""),
        doctor.Check("a", "y", False, "", needed=False),
        doctor.Check("b", "x", False, ""),
    ]
    assert doctor.able(checks) == {"a": True, "b": False}


def test_hadoop_that_is_missing_of_another_release_or_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hadoop, "FOLDER", tmp_path)
    (tmp_path / "target/lib").mkdir(parents=True)
    content = b"a jar"
    (tmp_path / "artifacts.sha256").write_text(f"{hashlib.sha256(content).hexdigest()}  a/b/b.jar\n")
    jar, jars = tmp_path / "target/lib/b.jar", tmp_path / "target/class-path"

    assert doctor.built_hadoop(hadoop.release()).todo == "make hadoop"
    jars.write_text("lib/hadoop-hdfs-client-3.4.3.jar\nlib/hadoop-hdfs-3.4.3.jar\n")
    jar.write_bytes(content)
    assert doctor.built_hadoop(hadoop.release()).ok
    jar.write_bytes(content[1:])
    assert "3.4.3; b.jar is not as artifacts.sha256 has it" in doctor.built_hadoop(hadoop.release()).found
    jars.write_text("lib/hadoop-hdfs-3.3.6.jar\n")
    assert doctor.built_hadoop(hadoop.release()).found == "3.3.6; 3.4 is needed"


def test_maven_is_needed_until_hadoop_is_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools, "PATH", str(tmp_path))
    needed = {}
    for release in ("", "3.4.3"):
        monkeypatch.setattr(hadoop, "release", lambda release=release: release)
        checks = {check.name: check for check in doctor.hdfs()}
        assert checks["JDK"].todo == "apt install default-jdk-headless" and checks["JDK"].needed
        assert checks["Maven"].todo == "apt install maven"
        needed[release] = checks["Maven"].needed
    assert needed == {"": True, "3.4.3": False}


def test_dilated_time_is_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``doctor`` names what a machine lacks; this one may be such a machine."""
    monkeypatch.setattr(machine, "TUN", tmp_path / "tun")
    monkeypatch.setattr(machine, "MOUNTS", tmp_path / "mounts")
    built, library = installed.LIBVT, tmp_path / "a blank, and: a colon" / "libvt.so"
    library.parent.mkdir()
    monkeypatch.setattr(installed, "LIBVT", library)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {3})
    (tmp_path / "mounts").write_text("proc /proc proc rw 0 0\n")
    checks = {check.name: check for check in machine.examine()}
    for name in ("processors", "LibVT", "TUN devices", "control groups"):
        assert not checks[name].ok and checks[name].todo, checks[name]
    assert checks["shell"].found == "not tried: LibVT is missing"
    library.write_text("no library")
    assert "cannot be preloaded" in machine.shell().found
    shutil.copy(built, library)
    assert machine.shell().found == "dilated"
    limits = checks["processor limits"]
    assert not limits.ok and not limits.needed, "an experiment need not have hosts.cores"


@pytest.mark.parametrize(
    ("controllers", "said"), [("cpuset cpu io", "not tried"), ("cpuset io", "no controller 'cpu'")]
)
def test_limits_of_processor_time_need_a_controller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, controllers: str, said: str
) -> None:
    (tmp_path / "cgroup.controllers").write_text(controllers)
    (tmp_path / "cgroup.subtree_control").write_text("")
    mounts = tmp_path / "mounts"
    mounts.write_text(f"cgroup2 {tmp_path} cgroup2 rw 0 0\n")
    monkeypatch.setattr(machine, "MOUNTS", mounts)
    check = machine.limits()
    assert said in check.found and check.ok == (said == "not tried")
    assert machine.groups().ok == check.ok, "without the controller there are no groups for processors either"


def test_limits_of_processor_time_are_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a folder that is no control group, and in one that cannot be written to."""
    mounts = tmp_path / "mounts"
    mounts.write_text(f"cgroup {tmp_path} cgroup rw,cpu 0 0\ncgroup2 /nowhere cgroup2 rw 0 0\n")
    monkeypatch.setattr(machine, "MOUNTS", mounts)
    assert machine.hierarchy() == (tmp_path, 1)
    assert machine.limits().ok, "any folder takes a file"
    mounts.write_text(f"cgroup {tmp_path / 'gone'} cgroup rw,cpu 0 0\n")
    check = machine.limits()
    assert not check.ok and "No such file" in check.found and check.todo == "run it with sudo"
