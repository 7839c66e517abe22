"""The files that programs on Linux hosts see: the machine's, with what programs write in memory; and nothing
that changes from run to run."""

import os
import stat
import time
from pathlib import Path

import firstlight as fl
import pytest
from conftest import SMALL
from firstlight.linux import directory

pytestmark = pytest.mark.usefixtures("kernel")
LINUX = {"hosts.kind": "linux"}


def with_programs(folder: Path, *tables: str, linux: str = "") -> Path:
    """The small experiment and some programs."""
    file = folder / "small.toml"
    programs = "".join(f"\n[[program]]\n{table}\n" for table in tables)
    file.write_text(f"{SMALL}{linux}{programs}\n")
    return file


def contents(folder: Path) -> dict[str, str]:
    return {str(f.relative_to(folder)): f.read_text() for f in sorted(folder.rglob("*")) if f.is_file()}


WRITES = """
set -e
cd $FIRSTLIGHT_EXPERIMENT/data
echo changed > old; echo new > new; mkdir deep; echo deeper > deep/file
rm gone; mv kept moved; mv folder renamed
chmod 600 old; ln -s old link
cat old new deep/file moved renamed/inside link
ls; test ! -e gone
"""


def test_what_programs_write_is_theirs_alone(tmp_path: Path) -> None:
    """All programs of the run see each change, and no later run does."""
    data = tmp_path / "data"
    (data / "folder").mkdir(parents=True)
    for name in ("old", "gone", "kept", "folder/inside"):
        (data / name).write_text(f"{name}\n")
    before = contents(tmp_path)
    again = f"sleep 0.005; cat {data}/old; ls {data}"
    file = with_programs(
        tmp_path,
        f"on = 'host0'\nname = 'writes'\nrun = '''{WRITES}'''",
        f"on = 'host1'\nname = 'again'\nrun = '{again}'",
    )
    before["small.toml"] = file.read_text()
    said = fl.run(file, LINUX).programs
    listed = "changed deep link moved new old renamed"
    assert " ".join(said["writes"].split()) == f"changed new deeper kept folder/inside {listed}"
    assert " ".join(said["again"].split()) == listed
    assert contents(tmp_path) == before
    assert stat.S_IMODE((data / "old").stat().st_mode) != 0o600


def test_what_lies_above_the_experiment_is_found_by_its_origin(tmp_path: Path) -> None:
    (tmp_path / "beside").write_text("beside\n")
    (tmp_path / "folder").mkdir()
    run = "cat $FIRSTLIGHT_ORIGIN/../beside; cd $FIRSTLIGHT_EXPERIMENT; pwd -P; ls; ls $FIRSTLIGHT_ORIGIN/"
    file = with_programs(tmp_path / "folder", f'on = "host0"\nname = "looks"\nrun = "{run}"')
    said = fl.run(file, LINUX).programs["looks"]
    assert said == "beside\n/run/firstlight/experiment\nsmall.toml\nsmall.toml\n"


def test_another_user_writes_where_that_user_may(tmp_path: Path) -> None:
    tries = "id -un; echo mine > here; cat here; touch /tmp/nobodys; touch /etc/nobodys || echo refused"
    file = with_programs(tmp_path, f'on = "host0"\nname = "tries"\nrun = "{tries}"\nuser = "nobody"')
    assert fl.run(file, LINUX).programs["tries"].split() == ["nobody", "mine", "refused"]
    assert not Path("/tmp/nobodys").exists()


def test_writable_directories_are_the_machines(tmp_path: Path) -> None:
    """By their own path and by that of the experiment; those that are missing are made."""
    (tmp_path / "out").mkdir()
    run = "cd $FIRSTLIGHT_EXPERIMENT; echo 1 > out/one; echo 2 > %s/new/deep/two; echo 3 > three"
    linux = '\n[linux]\nwritable = ["out/", "new/deep"]\n'
    file = with_programs(tmp_path, f'on = "host0"\nrun = "{run % tmp_path}"', linux=linux)
    fl.run(file, LINUX)
    found = contents(tmp_path)
    del found["small.toml"]
    assert found == {"out/one": "1\n", "new/deep/two": "2\n"}


WRONG = '\n[linux]\nwritable = ["small.toml"]\n'


def test_a_writable_file_is_refused(tmp_path: Path) -> None:
    file = with_programs(tmp_path, 'on = "host0"\nrun = "true"', linux=WRONG)
    with pytest.raises(fl.SpecError, match=r"linux\.writable: 'small\.toml' is no directory"):
        fl.run(file, LINUX)


def test_what_a_failed_program_has_written_is_kept(tmp_path: Path) -> None:
    run = "mkdir logs; echo why > logs/log; mkfifo pipe; exit 3"
    file = with_programs(tmp_path, f'on = "host0"\nname = "mine"\nrun = "{run}"')
    with pytest.raises(fl.RunError, match="code 3"):
        fl.run(file, LINUX, out=tmp_path / "r")
    assert (tmp_path / "r.failed" / "programs" / "mine" / "logs" / "log").read_text() == "why\n"


LOOK = r"""
import os, platform, random, socket, stat, sys, time, uuid
def show(*what): print(*what, flush=True)
os.mkdir("made"); open("made/file", "w").write("x")
show(os.getcwd(), os.environ["PWD"], sorted(os.environ.items()), sys.argv, sys.path)
for name in ("cmdline", "mounts", "1/cmdline", "1/environ", "self/maps", "self/auxv", "self/stat", "uptime",
             "version", "cpuinfo"):
    show(name, open(f"/proc/{name}", "rb").read())
show("memory", open("/proc/meminfo").read().splitlines())
for place in (".", "/", "/tmp", "/dev/shm", "/run", "made/file", "/usr/bin"):
    show("memory", place, os.statvfs(place), os.statvfs(place).f_fsid)
FIELDS = [field for field in sorted(dir(os.stat_result)) if field.startswith("st_") and field != "st_ino"]
for place in (".", "..", "made", "made/file", "/", "/etc/passwd", "/etc/hosts", "/tmp", "/usr/bin/env",
              "/usr", "/run", "/dev/shm", os.environ["READ"]):
    found = os.stat(place)
    show("number of directory" if stat.S_ISDIR(found.st_mode) else "number", place, found.st_ino)
    show(place, [getattr(found, field) for field in FIELDS])
show([(os.fstat(end).st_size, os.fstat(end).st_mtime_ns) for end in (0, 1, 2)])
show([os.readlink(f"/proc/self/fd/{end}") for end in (0, 1, 2)])
show([(entry.name, entry.inode()) for entry in sorted(os.scandir("/usr"), key=lambda entry: entry.name)])
show(sorted(os.listdir("/run")), sorted(os.listdir("/run/firstlight")), os.listdir("/dev/shm"))
show(time.time(), time.monotonic(), time.perf_counter_ns())
show(uuid.uuid1(), uuid.uuid4(), random.random(), os.urandom(9))
show(id(object()), hash("x"), os.getpid(), os.getppid(), os.uname(), socket.gethostname(), os.cpu_count())
"""


def looked(folder: Path, shared: Path) -> tuple[str, str]:
    """The facts that a program in an experiment of ``folder`` can observe, and the run's digest."""
    folder.mkdir(parents=True)
    (folder / "look.py").write_text(LOOK)
    run = f"export READ={shared}; exec python3 -S $FIRSTLIGHT_EXPERIMENT/look.py"
    result = fl.run(with_programs(folder, f'on = "host0"\nname = "look"\nrun = "{run}"'), LINUX)
    return result.programs["look"], result.digest


def test_runs_look_alike_to_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs that differ in their directory, that of the experiment, the environment, what has been read of the
    machine's files, and how full the machine is. Where the experiment's folder lies deeper, its path takes
    more of the kernel's memory, and directories have other numbers."""
    shared = tmp_path / "shared"
    shared.write_text("read by all")
    first, digest = looked(tmp_path / "a" / "one", shared)
    place = "/run/firstlight/programs/look"
    assert first.startswith(f"{place} {place} [('FIRSTLIGHT_EXPERIMENT', '/run/firstlight/experiment')")
    elsewhere = tmp_path / "another" / "place" / "of-runs"
    elsewhere.mkdir(parents=True)
    monkeypatch.setattr(directory, "place", lambda memory_mb: elsewhere)
    monkeypatch.setenv("TMPDIR", str(elsewhere))
    monkeypatch.setenv("FIRSTLIGHT_SOMETHING", "x" * 5000)
    monkeypatch.chdir(elsewhere)
    (elsewhere / "full").write_bytes(bytes(1 << 20))
    os.utime(shared, ns=(time.time_ns(), shared.stat().st_mtime_ns))
    assert_alike((first, digest), looked(tmp_path / "b" / "two", shared))
    deeper = tmp_path.joinpath("b", *("a-level-of-the-path" for _ in range(20)), "c")
    assert_alike((first, digest), looked(deeper, shared), but=("memory", "number of directory"))


def assert_alike(one: tuple[str, str], other: tuple[str, str], but: tuple[str, ...] = ()) -> None:
    """Fail at the first line of what was found out that differs and does not begin with ``but``."""
    for line, same in zip(one[0].splitlines(), other[0].splitlines(), strict=True):
        assert line == same or line.startswith(but), "what a program finds out differs"
    assert one[1] == other[1]
