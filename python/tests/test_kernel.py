"""Kernels in the cache: which one a run uses, and the error without one."""

import json
import os
from pathlib import Path

import pytest
from firstlight.errors import KernelError
from firstlight.linux import kernels, selftest


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache."""
    monkeypatch.setenv("FIRSTLIGHT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def put(version: str, hz: int = 250, hash: str | None = None, seccomp: bool = True) -> Path:
    """A kernel in the cache, by default of this checkout's sources."""
    hash = hash or kernels.source_hash(hz)
    place = kernels.folder() / f"{version}-hz{hz}-{hash}"
    (place / "modules").mkdir(parents=True)
    (place / "linux").touch(mode=0o755)
    manifest = {"version": version, "hz": hz, "hash": hash, "seccomp": seccomp, "source": "a test"}
    (place / "kernel.json").write_text(json.dumps(manifest))
    return place


def test_without_a_kernel_the_error_says_how_to_build_one() -> None:
    with pytest.raises(
        KernelError, match="no kernel with a tick of 4 ms is built: run `firstlight kernel build --hz 250`"
    ):
        kernels.find(250)
    put("7.2.13", hz=1000)
    with pytest.raises(KernelError, match="tick of 10 ms"):
        kernels.find(100)


def test_the_newest_version_is_taken_unless_one_is_named() -> None:
    old, new = put("6.12.117", seccomp=False), put("7.2.13")
    put("10.1.0", hz=1000)
    found = kernels.find(250)
    assert (found.path, found.version, found.seccomp) == (new, "7.2.13", True)
    assert (found.binary, found.modules) == (new / "linux", new / "modules")
    for series in ("6.12.117", "6.12", "6"):
        assert kernels.find(250, series).path == old
    for other in ("6.13.0", "6.1"):
        with pytest.raises(KernelError, match=rf"version {other} is built: run .* --source {other}`"):
            kernels.find(250, other)


def test_versions_are_compared_as_numbers() -> None:
    put("6.9.1"), put("6.12.1"), put("6.12.1-rc2", hz=100)
    assert [k.version for k in kernels.built()] == ["6.12.1-rc2", "6.12.1", "6.9.1"]


def test_a_kernel_of_other_sources_is_not_taken() -> None:
    put("7.2.13", hash="0123456789ab")
    with pytest.raises(KernelError, match=r"built from other sources .*0123456789ab"):
        kernels.find(250)
    mine = put("6.12.117")
    assert kernels.find(250).path == mine


def test_a_tick_that_no_kernel_has_is_an_error() -> None:
    with pytest.raises(KernelError, match=r"every 3\.333"):
        kernels.find(300)


@pytest.mark.parametrize("wrong", ["{}", "[" * 100_000, "/dev/zero", "directory"])
def test_a_broken_description_names_the_file(cache: Path, wrong: str) -> None:
    file = put("7.2.13") / "kernel.json"
    file.unlink()
    if wrong == "directory":
        file.mkdir()
    elif wrong.startswith("/"):
        file.symlink_to(wrong)
    else:
        file.write_text(wrong)
    with pytest.raises(KernelError, match=r"kernel\.json: not a kernel's description .* build again"):
        kernels.find(250)


def test_a_kernel_without_its_binary_is_an_error() -> None:
    (put("7.2.13") / "linux").unlink()
    with pytest.raises(KernelError, match="missing or not executable"):
        kernels.find(250)


def test_the_hash_follows_sources_and_tick_and_nothing_else(tmp_path: Path) -> None:
    linux = tmp_path / "linux"
    (linux / "kernel").mkdir(parents=True)
    (linux / "retcp").mkdir()
    for name in ("firstlight.patch", "firstlight_kern.c", "kernel.config", "README.md"):
        (linux / "kernel" / name).write_text(name)
    first = kernels.source_hash(250, linux)
    assert first != kernels.source_hash(100, linux)
    (linux / "kernel" / "README.md").write_text("other words")
    (linux / "retcp" / "retcp_bpf.c").write_text("for the host's kernel")
    assert kernels.source_hash(250, linux) == first
    (linux / "kernel" / "kernel.config").write_text("CONFIG_X=y")
    second = kernels.source_hash(250, linux)
    assert second != first
    (linux / "retcp" / "Kbuild").write_text("obj-m += retcp.o")
    assert kernels.source_hash(250, linux) != second


def test_the_folder_of_our_sources_can_be_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (kernels.folder_of_linux() / "kernel" / "firstlight.h").is_file()
    monkeypatch.setenv("FIRSTLIGHT_LINUX", str(tmp_path))
    with pytest.raises(KernelError, match="FIRSTLIGHT_LINUX"):
        kernels.folder_of_linux()


def test_the_cache_follows_xdg_cache_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FIRSTLIGHT_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert kernels.cache() == tmp_path / "firstlight"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert kernels.cache() == Path(os.path.expanduser("~/.cache/firstlight"))


def test_a_first_boot_is_judged_by_its_console(tmp_path: Path) -> None:
    reached = "Kernel panic - not syncing: Attempted to kill init! exitcode=0x00000000"
    assert selftest.verdict(reached, 134) == ""
    assert "code 134" in selftest.verdict(reached.replace("00000000", "00007f00"), 134)
    assert "No working init" in selftest.verdict("boots\nKernel panic: No working init found.\n", 134)
    trace = "Kernel panic - not syncing: no memory\n ? panic+0x0/0x32c\n"
    assert "not syncing: no memory" in selftest.verdict(trace, 134)
    assert "code 1" in selftest.verdict("", 1)
    assert "cannot be executed" in selftest.boot(tmp_path / "nothing", True)


def test_a_kernel_of_the_installed_package_is_found(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = put("7.2.13")
    package = tmp_path / "site" / "firstlight_kernel"
    (package / "kernels").mkdir(parents=True)
    (package / "__init__.py").touch()
    place.rename(package / "kernels" / place.name)
    with pytest.raises(KernelError, match="no kernel"):
        kernels.find(250)
    monkeypatch.syspath_prepend(tmp_path / "site")
    assert kernels.find(250).path == package / "kernels" / place.name
