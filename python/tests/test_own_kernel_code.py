"""Kernel modules and patches of the user's own: built, loaded, named as a congestion control, refused."""

import shutil
from pathlib import Path

import firstlight as fl
import pytest
from conftest import Command
from firstlight.linux import kernels, modules, own_code, workshop
from firstlight.linux.kernels import Kernel
from firstlight.linux.own_code import Code

EXPERIMENT = """\
duration = "20ms"

[fabric]
kind = "dumbbell"
left = 1
right = 1

[hosts]
kind = "linux"
rate = "10Gbps"
delay = "2us"
mtu = "1500B"

[links]
rate = "2Gbps"

[switch]
queue = 40

[tcp]
cc = "fixed"

[linux]
modules = ["./fixed"]

[[flows]]
from = "host0"
to = "host1"
"""
SOURCE = """\
#include <linux/module.h>
#include <net/tcp.h>
#include "window.h"

static u32 fixed_ssthresh(struct sock *sk)
{
	return WINDOW;
}

static void fixed_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	tcp_snd_cwnd_set(tcp_sk(sk), WINDOW);
}

static struct tcp_congestion_ops fixed __read_mostly = {
	.name = "fixed",
	.owner = THIS_MODULE,
	.ssthresh = fixed_ssthresh,
	.cong_avoid = fixed_cong_avoid,
	.undo_cwnd = tcp_reno_undo_cwnd,
};

static int __init fixed_register(void)
{
	return tcp_register_congestion_control(&fixed);
}

static void __exit fixed_unregister(void)
{
	tcp_unregister_congestion_control(&fixed);
}

module_init(fixed_register);
module_exit(fixed_unregister);
MODULE_LICENSE("GPL");
"""


@pytest.fixture
def module(tmp_path: Path) -> Path:
    """The directory of a congestion control whose window is five packets."""
    folder = tmp_path / "fixed"
    folder.mkdir()
    (folder / "Kbuild").write_text("obj-m := fixed.o\n")
    (folder / "window.h").write_text("#define WINDOW 5\n")
    (folder / "fixed.c").write_text(SOURCE)
    return folder


@pytest.fixture
def experiment(module: Path) -> Path:
    """An experiment that loads the module."""
    file = module.parent / "fixed.toml"
    file.write_text(EXPERIMENT)
    return file


@pytest.fixture
def buildable(kernel: Kernel) -> Kernel:
    """A kernel with what builds of modules need."""
    if not kernel.tree.is_file():
        pytest.skip("the kernel has nothing to build modules with: `firstlight kernel build`")
    return kernel


def built_by(file: Path) -> list[Path]:
    """The modules of an experiment, built."""
    experiment = fl.core.Spec.read(file).check()
    return modules.of(own_code.modules(experiment), kernels.find(250))


def test_a_congestion_control_of_a_module_is_used(
    buildable: Kernel, experiment: Path, module: Path, tmp_path: Path
) -> None:
    first = fl.run(experiment, {"measure.tcp_info": "1ms"}, out=tmp_path / "out")
    assert set(first.table("tcp_info")["cwnd_packets"][5:]) == {5}
    assert set(first.manifest["inputs"]) == {f"./fixed/{f}" for f in ("Kbuild", "fixed.c", "window.h")}
    assert first.manifest["digest"] == fl.run(experiment, {"measure.tcp_info": "1ms"}).manifest["digest"]
    assert sorted(f.name for f in module.iterdir()) == ["Kbuild", "fixed.c", "window.h"], "nothing is left"
    (module / "window.h").write_text("#define WINDOW 7\n")
    second = fl.run(experiment, {"measure.tcp_info": "1ms"})
    assert set(second.table("tcp_info")["cwnd_packets"][5:]) == {7}
    assert second.manifest["key"] != first.manifest["key"]


def test_a_built_module_is_loaded(buildable: Kernel, experiment: Path, tmp_path: Path) -> None:
    [file] = built_by(experiment)
    shutil.copy(file, tmp_path / "fixed.ko")
    listed = fl.run(experiment, {"linux.modules": ["fixed.ko"]})
    assert set(listed.manifest["inputs"]) == {"fixed.ko"}
    assert listed.manifest["digest"] == fl.run(experiment).manifest["digest"]


def test_errors_of_the_compiler_have_the_users_file_and_line(
    buildable: Kernel, experiment: Path, module: Path
) -> None:
    (module / "fixed.c").write_text(SOURCE.replace("return WINDOW;", "return WINDOW"))
    with pytest.raises(fl.KernelError) as e:
        built_by(experiment)
    assert f"{experiment}:24:11: linux.modules: ./fixed: does not compile:\n" in str(e.value)
    assert f"{module}/fixed.c:8:1: error: expected" in str(e.value)
    (module / "fixed.c").write_text(SOURCE.replace("tcp_reno_undo_cwnd", "nobodys_undo"))
    with pytest.raises(fl.KernelError, match=r"fixed\.c:20:22: error: .*nobodys_undo.* undeclared"):
        built_by(experiment)
    (module / "fixed.c").write_text(SOURCE.replace('MODULE_LICENSE("GPL");', ""))
    with pytest.raises(fl.KernelError, match="missing MODULE_LICENSE"):
        built_by(experiment)
    (module / "Kbuild").write_text("obj-m := other.o\n")
    with pytest.raises(fl.KernelError, match=r"No rule to make target '.*other\.o'"):
        built_by(experiment)
    (module / "Kbuild").write_text("# nothing\n")
    with pytest.raises(fl.KernelError, match=r"its Kbuild makes no module: write obj-m := NAME\.o"):
        built_by(experiment)
    assert not list(modules.folder().glob(".building-*"))


def test_a_module_that_fails_to_load_ends_the_run_with_the_kernels_reason(
    buildable: Kernel, experiment: Path, module: Path, tmp_path: Path
) -> None:
    said = 'pr_err("fixed: no room for it\\n"); return -ENOSPC;'
    (module / "fixed.c").write_text(SOURCE.replace("return tcp_register_congestion_control(&fixed);", said))
    with pytest.raises(fl.RunError, match=r"refuses the module fixed\.ko \(fixed: no room for it\): ENOSPC"):
        fl.run(experiment, out=tmp_path / "out")


def test_a_control_that_no_module_registers_is_named(
    buildable: Kernel, experiment: Path, tmp_path: Path
) -> None:
    with pytest.raises(fl.RunError, match=r"no congestion control .* is called fixt: .*fixed"):
        fl.run(experiment, {"tcp.cc": "fixt"}, out=tmp_path / "out")


def test_a_module_of_another_kernel_is_refused(buildable: Kernel, experiment: Path, tmp_path: Path) -> None:
    [file] = built_by(experiment)
    other = file.read_bytes().replace(f"vermagic={buildable.version}".encode(), b"vermagic=6.1.105")
    (tmp_path / "fixed.ko").write_bytes(other)
    with pytest.raises(fl.KernelError, match=r"linux\.modules: fixed\.ko: built for the kernel '6\.1\.105"):
        fl.run(experiment, {"linux.modules": ["fixed.ko"]})
    (tmp_path / "fixed.ko").write_text("no module")
    with pytest.raises(fl.KernelError, match=r"linux\.modules: fixed\.ko: not a kernel module"):
        fl.run(experiment, {"linux.modules": ["fixed.ko"]})
    shutil.copytree(tmp_path / "fixed", tmp_path / "again")
    with pytest.raises(fl.KernelError, match=r"two modules are called fixed\.ko"):
        fl.run(experiment, {"linux.modules": ["fixed", "again"]})


def test_a_kernel_without_its_tree_says_how_to_build_it(tmp_path: Path) -> None:
    bare = Kernel(tmp_path, "7.2.13", 250, "0", True, {})
    code = Code("x.toml:1:1: linux.modules", "./mine", tmp_path, ("Kbuild",))
    with pytest.raises(fl.KernelError, match=r"nothing to build modules with .*kernel build --hz 250`"):
        modules.built(code, bare)


def test_a_sweep_over_a_modules_control_and_another(
    buildable: Kernel, experiment: Path, command: Command
) -> None:
    experiment.write_text(EXPERIMENT + '[sweep]\n"tcp.cc" = ["cubic", "fixed"]\n')
    done = command("sweep", experiment, "--out", "s")
    assert done.returncode == 0, done.stderr


# ---- Patches ----


def test_a_patched_kernel_is_its_own(
    tmp_path: Path, experiment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FIRSTLIGHT_CACHE", str(tmp_path / "cache"))
    patch = tmp_path / "a.patch"
    patch.write_text("one")
    wanted = kernels.source_hash(250, patches=[patch])
    patch.write_text("two")
    assert len({wanted, kernels.source_hash(250), kernels.source_hash(250, patches=[patch])}) == 3
    with pytest.raises(
        fl.KernelError,
        match=rf"and the patches a\.patch is built: run `firstlight kernel build --hz 250 --patch {patch}`",
    ):
        fl.run(experiment, {"linux.patches": ["a.patch"]})


def test_a_patch_that_does_not_fit_shows_the_hunk() -> None:
    said = [
        "patching file net/a.c",
        "patching file net/b.c",
        "Hunk #2 FAILED at 153.",
        "1 out of 2 hunks FAILED",
    ]
    assert workshop.misfit(said) == "net/b.c: Hunk #2 FAILED at 153"
    missing = [
        "can't find file to patch at input line 5",
        "|--- a/net/c.c",
        "|+++ b/net/c.c",
        "No file to patch.  Skipping",
    ]
    assert workshop.misfit(missing) == "there is no b/net/c.c"
    assert workshop.misfit(["patch: **** malformed patch at line 7: "]) == "malformed patch at line 7"
