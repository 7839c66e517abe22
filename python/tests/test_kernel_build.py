"""Building a kernel, with stand-ins for make and other tools: files that remain, and messages."""

import os
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest
from firstlight.errors import KernelError
from firstlight.linux import build, commands, kernels, sources, tools, workshop
from firstlight.runs import leftovers

TOOL = """#!/bin/bash
# make, patch, strip and compilers, each of which waits for PACE seconds.
# TROUBLE names a step that fails, or (with "slow") one that does not end.
tool=${0##*/}; step=$tool
for word; do case $word in M=*) step=module; folder=${word#M=};; -*|ARCH=*|modules) ;; *)
  [ $tool = make ] && [ $step = make ] && step=$word;; esac; done
echo "$step in $PWD" >> "$STEPS"
sleep "${PACE:-0}"
[ "$TROUBLE" = "$step" ] && { echo "x.c:1: error: trouble with $step"; exit 2; }
[ "$TROUBLE" = "slow $step" ] && { echo $$ > "$STEPS.pid"; sleep 300; }
case $step in
  linux) echo "  CC      kernel/fork.o"; touch vmlinux.symvers
    cat > linux <<END
#!/bin/sh
case "\\$*" in *$REFUSES*) echo "panic: $REFUSES is not permitted"; exit 1;; esac
echo "$CONSOLE"; exit 134
END
    chmod +x linux;;
  module) touch "$folder/${folder##*/}.ko";;
  tinyconfig) find . -type f > "$STEPS.files";;
esac
exit 0
"""
USED = (
    "arch/x86/Kconfig",
    "arch/arm/crypto/Kconfig",
    "Documentation/Kconfig",
    "drivers/gpu/drm/Kconfig",
    "drivers/net/veth.c",
)
UNUSED = ("arch/arm/mm/mmu.c", "Documentation/mm/swap.rst", "drivers/gpu/drm/drm_edid.c")
CONSOLE = "Kernel panic - not syncing: Attempted to kill init! exitcode=0x00000000"


class Bench:
    """A cache, a source tree and stand-ins for the tools."""

    def __init__(self, folder: Path) -> None:
        self.cache = folder / "cache"
        self.steps = folder / "steps"
        self.bin = folder / "bin"
        self.bin.mkdir()
        for tool in ("make", "patch", "strip", "gcc", "ld", "flex", "bison", "bc", "xz"):
            (self.bin / tool).write_text(TOOL)
            (self.bin / tool).chmod(0o755)
        self.tree = self.make_tree(folder / "tree", "7.2.13")

    def make_tree(self, tree: Path, version: str) -> Path:
        """The files of a source tree that a build reads."""
        (tree / "arch/um/drivers").mkdir(parents=True)
        (tree / "include/net").mkdir(parents=True)
        (tree / "scripts/kconfig").mkdir(parents=True)
        (tree / "scripts/kconfig/merge_config.sh").write_text('shift; cat "$2" >> "$1"\n')
        (tree / ".config").touch()
        names = ("VERSION", "PATCHLEVEL", "SUBLEVEL", "EXTRAVERSION")
        numbers = [*version.split("."), ""]
        (tree / "Makefile").write_text("".join(f"{n} = {v}\n" for n, v in zip(names, numbers, strict=True)))
        return tree

    def environment(self, trouble: str = "") -> dict[str, str]:
        """The environment of a command that uses the cache, the tree and the stand-ins."""
        path = os.pathsep.join((str(self.bin), os.environ["PATH"]))
        own = {
            "FIRSTLIGHT_CACHE": str(self.cache),
            "STEPS": str(self.steps),
            "TROUBLE": trouble,
            "PATH": path,
        }
        return {**os.environ, **own, "CONSOLE": CONSOLE, "REFUSES": "nothing"}

    def left(self) -> list[str]:
        """Names in the cache's folder of kernels."""
        return sorted(f.name for f in (self.cache / "kernels").iterdir() if f.name != ".lock")

    def ran(self) -> list[str]:
        """Steps of the stand-ins, in order."""
        return (
            [line.split()[0] for line in self.steps.read_text().splitlines()] if self.steps.exists() else []
        )


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    made = Bench(tmp_path)
    for key, value in made.environment().items():
        monkeypatch.setenv(key, value)
    monkeypatch.setattr(tools, "PATH", made.environment()["PATH"])
    monkeypatch.setattr(build, "NEEDED_BYTES", 0)
    return made


def quiet(_: object) -> None:
    """Ignore a message."""


def test_a_kernel_is_built_and_found(bench: Bench) -> None:
    shares: list[float] = []
    made = build.build(str(bench.tree), 100, say=quiet, progress=shares.append)
    assert made == kernels.find(100)
    assert (made.version, made.hz, made.seccomp) == ("7.2.13", 100, True)
    assert made.path.name == f"7.2.13-hz100-{kernels.source_hash(100)}"
    assert {f.name for f in made.path.iterdir()} == {
        *("linux", "kernel.json", "config", "modules", "build.log", "tree.tar.xz")
    }
    assert "CONFIG_HZ_100=y" in (made.path / "config").read_text()
    assert sorted(f.name for f in made.modules.iterdir()) == ["dx.ko", "retcp.ko"]
    assert set(made.manifest) == {"version", "hz", "hash", "patch", "config", "source", "seccomp"}
    assert bench.left() == [made.path.name]
    assert shares == sorted(shares) and shares[-1] == 1.0
    assert not (bench.tree / "linux").exists(), "the user's tree is left as it was"


def test_a_built_kernel_is_not_built_again(bench: Bench) -> None:
    first = build.build(str(bench.tree), say=quiet)
    before = bench.ran().count("linux")
    assert build.build("auto", say=quiet) == first
    assert build.build(str(bench.tree), say=quiet) == first
    assert bench.ran().count("linux") == before
    build.build(str(bench.tree), force=True, say=quiet)
    assert bench.ran().count("linux") == before + 1
    assert bench.left() == [first.path.name]


def test_a_kernel_before_seccomp_runs_by_ptrace(bench: Bench, tmp_path: Path) -> None:
    tree = bench.make_tree(tmp_path / "old", "6.12.117")
    assert build.build(str(tree), say=quiet).seccomp is False


def test_where_seccomp_is_not_permitted_it_is_ptrace(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REFUSES", "seccomp=on")
    made = build.build(str(bench.tree), say=quiet)
    assert made.seccomp is False
    assert "seccomp=on is not permitted" in (made.path / "build.log").read_text()


def test_a_tarball_is_accepted_and_its_version_read(bench: Bench, tmp_path: Path) -> None:
    for version in ("7.2.13", "6.1.192"):
        tree = bench.make_tree(tmp_path / "packed" / f"linux-{version}", version)
        for file in (*UNUSED, *USED):
            (tree / file).parent.mkdir(parents=True, exist_ok=True)
            (tree / file).touch()
        with tarfile.open(tmp_path / f"linux-{version}.tar", "w") as tar:
            tar.add(tmp_path / "packed" / f"linux-{version}", f"linux-{version}")
    assert build.build(str(tmp_path / "linux-7.2.13.tar"), say=quiet).version == "7.2.13"
    unpacked = {line.removeprefix("./") for line in Path(f"{bench.steps}.files").read_text().splitlines()}
    assert set(USED) <= unpacked and not set(UNUSED) & unpacked
    with pytest.raises(KernelError, match=r"6\.1\.192 is too old"):
        build.build(str(tmp_path / "linux-6.1.192.tar"), say=quiet)
    assert len(bench.left()) == 1


@pytest.mark.parametrize(
    ("trouble", "message"),
    [
        ("patch", r"our patch does not fit Linux 7\.2\.13"),
        ("tinyconfig", "make tinyconfig failed: x.c:1: error: trouble with tinyconfig"),
        ("linux", "make linux failed: x.c:1: error: trouble with linux"),
        ("module", "error: trouble with module"),
    ],
)
def test_a_failed_build_leaves_only_its_log(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, trouble: str, message: str
) -> None:
    monkeypatch.setenv("TROUBLE", trouble)
    with pytest.raises(KernelError, match=message) as e:
        build.build(str(bench.tree), say=quiet)
    assert bench.left() == ["failed-7.2.13-hz250.log"]
    assert str(bench.cache / "kernels" / "failed-7.2.13-hz250.log") in str(e.value)
    assert f"trouble with {trouble}" in (bench.cache / "kernels" / "failed-7.2.13-hz250.log").read_text()


def test_a_kernel_that_does_not_start_is_not_kept(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONSOLE", "ptrace: Operation not permitted")
    with pytest.raises(KernelError, match=r"does not start: .*not permitted"):
        build.build(str(bench.tree), say=quiet)
    assert bench.left() == ["failed-7.2.13-hz250.log"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_build_leaves_nothing(bench: Bench, number: signal.Signals) -> None:
    command = [sys.executable, "-m", "firstlight", "kernel", "build", "--source", str(bench.tree)]
    process = subprocess.Popen(
        command, env=bench.environment("slow linux"), stderr=subprocess.PIPE, text=True
    )
    pid_file = Path(f"{bench.steps}.pid")
    deadline = time.monotonic() + 60
    while not (pid_file.exists() and pid_file.read_text().strip()):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + number, errors
    assert bench.left() == []
    while leftovers.is_alive(int(pid_file.read_text())):  # it is killed; the kernel takes a moment to end it
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_build_under_nohup_goes_on_without_its_terminal(bench: Bench) -> None:
    words = [sys.executable, "-m", "firstlight", "kernel", "build", "--source", str(bench.tree)]
    build = subprocess.Popen(["nohup", *words], env={**bench.environment(), "PACE": "0.2"})
    deadline = time.monotonic() + 60
    while not (bench.steps.exists() and "linux in" in bench.steps.read_text()):
        assert build.poll() is None and time.monotonic() < deadline
        time.sleep(0.02)
    build.send_signal(signal.SIGHUP)
    assert build.wait(timeout=60) == 0
    assert len(bench.left()) == 1


def test_the_next_build_removes_what_a_killed_one_left(bench: Bench) -> None:
    (bench.cache / "kernels" / ".building-x" / "tree").mkdir(parents=True)
    made = build.build(str(bench.tree), say=quiet)
    assert bench.left() == [made.path.name]


def test_old_sources_are_refused_with_the_reason(bench: Bench, tmp_path: Path) -> None:
    tree = bench.make_tree(tmp_path / "old", "6.1.192")
    with pytest.raises(KernelError, match=r"6\.1\.192 is too old: 6\.12 or newer is needed .*AVX-512"):
        build.build(str(tree), say=quiet)
    assert bench.left() == []


def test_wrong_sources_are_named(bench: Bench, tmp_path: Path) -> None:
    with pytest.raises(KernelError, match="nowhere: no such file; --source takes auto"):
        build.build(str(tmp_path / "nowhere"), say=quiet)
    with pytest.raises(KernelError, match="not a source tree of Linux"):
        build.build(str(bench.bin), say=quiet)
    (tmp_path / "notes.txt").touch()
    with pytest.raises(KernelError, match="neither a source tree nor a tarball"):
        build.build(str(tmp_path / "notes.txt"), say=quiet)
    with pytest.raises(KernelError, match="--hz 300: one of 100, 250, 1000"):
        build.build("auto", 300, say=quiet)


def test_a_full_disk_is_noticed_before_the_build(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "NEEDED_BYTES", 10**18)
    with pytest.raises(KernelError, match=r"GB are free, a build needs .* set FIRSTLIGHT_CACHE"):
        build.build(str(bench.tree), say=quiet)


def test_missing_tools_are_named_with_their_packages(bench: Bench) -> None:
    for tool in ("bc", "xz"):
        (bench.bin / tool).unlink()
    only = {"make": "make", "bc": "bc", "xz": "xz-utils", "patch": "patch"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tools, "PATH", str(bench.bin))
        with pytest.raises(KernelError, match="bc and xz must be installed: apt install bc xz-utils"):
            tools.require(only)
    assert tools.missing({"make": "make"}) == {}


def test_an_outer_make_does_not_change_the_build(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("MAKEFLAGS", "MAKELEVEL", "ARCH", "CROSS_COMPILE", "CFLAGS", "LDFLAGS", "O", "KBUILD_OUTPUT")
    for name in names:
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv("OTHER", "kept")
    seen = commands.environment()
    assert seen["OTHER"] == "kept"
    assert not set(names) & set(seen)


def test_when_the_newest_source_does_not_build_the_next_is_tried(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    newer = bench.make_tree(tmp_path / "newer", "8.0.1")
    (newer / "scripts/kconfig/merge_config.sh").write_text("exit 3\n")
    offers = [
        sources.Source("8.0.1-1", "linux-source-8.0 8.0.1-1", newer, "linux-source-8.0"),
        sources.Source("7.2.13-1", "linux-source-7.2 7.2.13-1", bench.tree, "linux-source-7.2"),
    ]
    monkeypatch.setattr(sources, "kept", lambda: offers)
    said: list[str] = []
    made = build.build("auto", say=said.append)
    assert made.version == "7.2.13"
    assert any("linux-source-8.0 8.0.1-1 does not work, trying an older one" in line for line in said)


def test_a_version_is_taken_from_the_cache(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    older = bench.make_tree(tmp_path / "older", "6.12.117")
    offers = [
        sources.Source("7.2.13-1", "linux-source-7.2 7.2.13-1", bench.tree, "linux-source-7.2"),
        sources.Source("6.12.117-1", "linux-source-6.12 6.12.117-1", older, "linux-source-6.12"),
    ]
    monkeypatch.setattr(sources, "kept", lambda: offers)
    made = build.build("6.12", say=quiet)
    assert made.version == "6.12.117"
    assert build.build("7.2.13", say=quiet).version == "7.2.13"
    before = bench.ran().count("linux")
    assert build.build("6.12", say=quiet) == made
    assert bench.ran().count("linux") == before
    with pytest.raises(KernelError, match=r"5\.4 is too old: 6\.12 or newer"):
        build.build("5.4", say=quiet)
    monkeypatch.setattr(sources, "candidates", lambda apt: offers)
    with pytest.raises(KernelError, match=r"the archive has no linux-source package of version 9\.1: pass"):
        build.build("9.1", say=quiet)


# ---- The user's own patches, and what builds of modules need ----

PATCH = """#!/bin/bash
# patch, whose second hunk fails in what is named 0.patch
case "$*" in *0.patch*) printf 'patching file net/a.c\\nHunk #2 FAILED at 153.\\n'; exit 1;; esac
"""


def test_a_patched_kernel_is_beside_the_others(bench: Bench, tmp_path: Path) -> None:
    patch = tmp_path / "a.patch"
    patch.write_text("one")
    plain = build.build(str(bench.tree), say=quiet)
    made = build.build(str(bench.tree), say=quiet, patches=[patch])
    assert made.path != plain.path
    assert made.manifest["patches"] == {"a.patch": workshop.short_hash(patch)}
    assert made.is_current and plain.is_current
    assert (kernels.find(250), kernels.find(250, patches=[patch])) == (plain, made)
    before = bench.ran().count("linux")
    assert build.build(str(bench.tree), say=quiet, patches=[patch]) == made
    assert bench.ran().count("linux") == before
    patch.write_text("two")
    with pytest.raises(KernelError, match=r"the patches a\.patch is built: run .* --patch "):
        kernels.find(250, patches=[patch])


def test_a_patch_that_does_not_fit_ends_the_build(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (bench.bin / "patch").write_text(PATCH)
    patch = tmp_path / "a.patch"
    patch.touch()
    offers = [sources.Source(v, v, bench.tree, v) for v in ("7.2.14", "7.2.13")]
    monkeypatch.setattr(sources, "kept", lambda: offers)
    said: list[str] = []
    with pytest.raises(
        KernelError, match=r"a\.patch: does not fit Linux 7\.2\.13: net/a\.c: Hunk #2 FAILED at 153"
    ):
        build.build(say=said.append, patches=[patch])
    assert not any("trying an older one" in line for line in said), "the patch is wrong, not the source"
    assert bench.left() == ["failed-7.2.13-hz250.log"]


def test_a_patch_may_be_of_any_file_of_a_tarball(bench: Bench, tmp_path: Path) -> None:
    tree = bench.make_tree(tmp_path / "packed" / "linux-7.2.13", "7.2.13")
    (tree / UNUSED[1]).parent.mkdir(parents=True)
    (tree / UNUSED[1]).touch()
    with tarfile.open(tmp_path / "linux.tar", "w") as tar:
        tar.add(tmp_path / "packed" / "linux-7.2.13", "linux-7.2.13")
    (tmp_path / "a.patch").touch()
    build.build(str(tmp_path / "linux.tar"), say=quiet, patches=[tmp_path / "a.patch"])
    assert UNUSED[1] in Path(f"{bench.steps}.files").read_text()


def test_what_builds_of_modules_read_is_kept(bench: Bench) -> None:
    kept = {
        "include/linux/tcp.h",
        "arch/um/Makefile",
        "scripts/mod/modpost",
        "include/config/auto.conf",
        "Makefile",
    }
    for file in (*kept, "include/dt-bindings/clock/x.h", "include/linux/tcp.c", "net/ipv4/tcp.c"):
        (bench.tree / file).parent.mkdir(parents=True, exist_ok=True)
        (bench.tree / file).touch()
    made = build.build(str(bench.tree), say=quiet)
    with tarfile.open(made.tree) as archive:
        assert (
            kept
            <= set(archive.getnames())
            <= {*(*kept, ".config", "Module.symvers", "include/net/firstlight_stamps.h")}
        )
    made.tree.unlink()
    again = build.build(str(bench.tree), say=quiet)
    assert again.tree.is_file(), "a kernel without it is built anew"


def test_the_kernel_that_an_experiment_wants(tmp_path: Path) -> None:
    file = tmp_path / "x.toml"
    text = (
        'duration = "1ms"\n[fabric]\nkind = "star"\nhosts = 2\n[hosts]\nrate = "1Gbps"\nkind = "linux"\n'
        '[linux]\nversion = "6.12"\npatches = ["a.patch"]\n[tcp]\ntick = "1ms"\n'
        '[[flows]]\nfrom = "host0"\nto = "host1"\n'
    )
    file.write_text(text)
    (tmp_path / "a.patch").touch()
    assert build.wanted_by(str(file)) == ("6.12", "1000", (tmp_path / "a.patch",))
    file.write_text(text.replace('kind = "linux"\n[linux]\nversion = "6.12"\npatches = ["a.patch"]\n', ""))
    with pytest.raises(KernelError, match="it has no Linux hosts in virtual time"):
        build.wanted_by(str(file))
