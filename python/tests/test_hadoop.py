"""Hadoop: what its build refuses, how a part of HDFS starts, and a small write into a real HDFS."""

import importlib.util
import os
import platform
import subprocess
from pathlib import Path
from types import ModuleType

import firstlight as fl
import pandas as pd
import pytest
from firstlight.linux import hadoop

NODE = hadoop.FOLDER / "node.sh"


@pytest.fixture(scope="module")
def build() -> ModuleType:
    """``hadoop/build.py``, which is no part of the package."""
    spec = importlib.util.spec_from_file_location("build", hadoop.FOLDER / "build.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# ---- What the build refuses ----


def repository(folder: Path) -> Path:
    """A repository of Maven's with two artifacts, and files of its own books."""
    for name, content in (("a/1/a.jar", b"a jar"), ("a/1/a.pom", b"a pom"), ("a/1/a.jar.sha1", b"x")):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def test_each_artifact_must_be_as_listed(build: ModuleType, tmp_path: Path) -> None:
    found = build.artifacts(repository(tmp_path))
    assert list(found) == ["a/1/a.jar", "a/1/a.pom"]
    build.compare(found, dict(found), whole=True)

    (tmp_path / "a/1/a.jar").write_bytes(b"another jar")
    with pytest.raises(
        build.BuildError, match=r"a/1/a\.jar: its SHA-256 is 3f01.*has fc8b.*; remove the file"
    ):
        build.compare(build.artifacts(tmp_path), found, whole=True)


def test_artifacts_that_are_not_listed_and_listed_ones_that_are_not_there(
    build: ModuleType, tmp_path: Path
) -> None:
    found = build.artifacts(repository(tmp_path))
    with pytest.raises(
        build.BuildError, match=r"a/1/a\.pom: not in artifacts\.sha256; after a change of pom"
    ):
        build.compare(found, {"a/1/a.jar": found["a/1/a.jar"]}, whole=False)
    listed = {**found, "b/b.jar": "0"}
    build.compare(found, listed, whole=False)
    with pytest.raises(build.BuildError, match=r"b/b\.jar: in artifacts\.sha256, but Maven has not fetched"):
        build.compare(found, listed, whole=True)


def test_a_damaged_artifact_ends_the_build_before_maven_runs(
    build: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = tmp_path / "artifacts.sha256"
    listed.write_text(f"{'0' * 64}  a/1/a.jar\n{'0' * 64}  a/1/a.pom\n")
    monkeypatch.setattr(build, "LIST", listed)
    monkeypatch.setattr(build, "TARGET", tmp_path)
    monkeypatch.setattr(build, "REPOSITORY", repository(tmp_path / "repository"))
    monkeypatch.setattr(build, "maven", lambda *_, **__: pytest.fail("Maven runs"))
    with pytest.raises(build.BuildError, match=r"a/1/a\.jar: its SHA-256 is"):
        build.build(test=False)


def test_the_list_has_what_an_experiment_runs(build: ModuleType) -> None:
    listed = build.read_list(build.LIST)
    assert all(len(digest) == 64 for digest in listed.values())
    jars = {path.rsplit("/", 1)[1] for path in listed if path.endswith(".jar")}
    release = min((jar for jar in jars if jar.startswith("hadoop-hdfs-3")), key=len).removesuffix(".jar")
    assert release.startswith(f"hadoop-hdfs-{hadoop.RELEASE}.")
    assert {f"{release}-tests.jar", "surefire-junit4-3.5.3.jar"} <= jars


def fake_tools(folder: Path, **said: str) -> None:
    """Tools that say a version and do nothing else."""
    for name, version in said.items():
        (folder / name).write_text(f"#!/bin/sh\necho {version}\n")
        (folder / name).chmod(0o755)


def test_tools_that_are_missing_or_too_old(
    build: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(build.BuildError, match=r"there is no javac: make packages"):
        build.require_tools()
    fake_tools(tmp_path, javac="javac 17.0.1")
    with pytest.raises(build.BuildError, match=r"there is no mvn: make packages"):
        build.require_tools()
    fake_tools(tmp_path, mvn="Apache Maven 3.5.4")
    with pytest.raises(build.BuildError, match=r"Maven is 3\.5\.4; 3\.6\.3 or newer is needed"):
        build.require_tools()
    fake_tools(tmp_path, javac="javac 1.8.0_392", mvn="Apache Maven 3.8.7")
    with pytest.raises(build.BuildError, match=r"javac is 1; 11 or newer is needed"):
        build.require_tools()
    fake_tools(tmp_path, javac="javac 21")
    build.require_tools()


# ---- How a part of HDFS starts ----


def started(*words: str, path: str = os.environ["PATH"], **environment: str) -> str:
    """Why a part does not start."""
    done = subprocess.run(
        ["/bin/sh", NODE, *words],
        env={"PATH": path, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 127
    return done.stderr


def test_a_part_of_hdfs_says_what_it_lacks(tmp_path: Path) -> None:
    here = platform.node()
    assert "no Linux host of an experiment" in started("namenode")
    assert "there is no java: make packages" in started("namenode", path=str(tmp_path), FIRSTLIGHT_HOST=here)
    fake_tools(tmp_path, java="never", dirname=str(tmp_path))
    missing = started("namenode", path=str(tmp_path), FIRSTLIGHT_HOST=here)
    assert f"{tmp_path}/target has no Hadoop: make hadoop" in missing


@pytest.mark.usefixtures("built")
def test_there_are_three_parts_of_hdfs() -> None:
    for words in ([], ["read"]):
        told = started(*words, FIRSTLIGHT_HOST=platform.node())
        assert "is no part of HDFS: write namenode, datanode or write" in told


# ---- A real HDFS ----


@pytest.fixture(scope="session")
def built() -> str:
    """The release of Hadoop that is built."""
    if not (release := hadoop.release()):
        pytest.skip("Hadoop is not built: make hadoop")
    return release


HDFS = """
name = "small write"
duration = "60s"

[fabric]
kind = "hybrid"
racks = 3
hosts_per_rack = 2

[hosts]
kind = "linux"
rate = "10Gbps"
mtu = "9000B"

[packet]
rate = "10Gbps"
delay = "5us"

[circuit]
rate = "40Gbps"
delay = "30us"

[schedule]
kind = "solstice"
week = "2ms"
night = "20us"
least_day = "180us"

[control]
demand = "adu"

[voq]
small = 64
"""
POLICY = "-D dfs.block.replicator.classname=firstlight.hdfs.ReHdfsPlacementPolicy"
WRITE = "write -D dfs.blocksize=4194304 /file 1 20000000 15"


def program(on: str, name: str, words: str, start: str) -> str:
    """A part of HDFS."""
    lines = [f'on = "{on}"', f'name = "{name}"', f'start = "{start}"', f'run = "sh {NODE} {words}"']
    server = "server = false" if name == "writer" else "server = true"
    return "\n".join(["\n[[program]]", *lines, server]) + "\n"


def small_write(folder: Path, writer: str = WRITE) -> Path:
    """An HDFS of five DataNodes in three racks; ``rack0.host1`` writes 20 MB in blocks of 4 MiB."""
    file = folder / "hdfs.toml"
    nodes = "".join(program(f"host{i}", f"datanode-host{i}", "datanode", "5s") for i in range(1, 6))
    file.write_text(
        HDFS
        + program("host0", "namenode", f"namenode {POLICY} -D dfs.block.replicator.rehdfs.rotation=0", "0s")
        + nodes
        + program("host1", "writer", writer, "8s")
    )
    return file


@pytest.mark.usefixtures("kernel", "built")
def test_a_small_write_into_a_real_hdfs(tmp_path: Path) -> None:
    """Each block crosses to the next rack once and is there twice; what goes elsewhere are reports. A second
    run is the same."""
    first = fl.run(small_write(tmp_path), patience=600)
    files, blocks = first.table("files"), first.table("blocks")
    assert list(files["bytes"]) == [20_000_000]
    assert sorted(blocks["bytes"]) == [20_000_000 - 4 * 4_194_304, *[4_194_304] * 4]
    assert set(blocks["program"]) == {"datanode-host1"}, "the writer's own DataNode has each first replica"
    within = (blocks["duration_us"] > 0) & (blocks["duration_us"] < files["duration_us"].max())
    assert within.all()

    assert crossed(first, 0, 1) > 20_000_000
    assert crossed(first, 0, 2) + crossed(first, 1, 2) < 1_000_000
    assert first.summary["circuit_bytes"] > 10_000_000

    again = fl.run(small_write(tmp_path), patience=600)
    assert again.digest == first.digest
    pd.testing.assert_frame_equal(again.table("blocks"), blocks)


def crossed(result: fl.Result, src: int, dst: int) -> int:
    """Bytes from a rack to another."""
    pairs = result.pairs
    pair = pairs[(pairs["src"] == src) & (pairs["dst"] == dst)]
    return int((pair["circuit_bytes"] + pair["packet_bytes"]).sum())


@pytest.mark.usefixtures("built")
def test_a_writer_with_wrong_words_says_how_it_is_called() -> None:
    target = hadoop.FOLDER / "target"
    jars = ":".join(str(target / jar) for jar in (target / "class-path").read_text().split())
    command = ["java", "-cp", jars, "firstlight.hdfs.WriteFiles", "/file", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "usage: WriteFiles [-D KEY=VALUE ...] PREFIX FILES BYTES EVERY" in done.stderr
