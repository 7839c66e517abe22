"""Sources of Linux from a package archive, with a stand-in for apt."""

from pathlib import Path

import pytest
from firstlight.errors import KernelError
from firstlight.linux import sources
from firstlight.linux.sources import Apt, Source

TARGETS = """\
Repo-URI: http://archive.example/debian/
Origin: Debian
Component: main
Release: old
Sourcesentry: {entry}:1

Repo-URI: http://archive.example/debian-security/
Origin: Debian
Component: main
Release: old-security
Sourcesentry: {entry}:8

Repo-URI: http://elsewhere.example/apt/
Origin: Elsewhere
Component: main
Release: stable
Sourcesentry: {entry}:15
"""
SETTINGS = """\
Types: deb
URIs: http://archive.example/debian
Suites: old
Signed-By: /keys/archive.gpg

Types: deb
URIs: http://elsewhere.example/apt
Suites: stable
Signed-By: /keys/elsewhere.gpg
"""
SYSTEM = """\
linux-source-6.1 | 6.1.192-2 | http://archive.example/debian-security old-security/main amd64 Packages
linux-source-6.12 | 6.12.117-1 | http://archive.example/debian-security old-security/main amd64 Packages
linux-source-6.12 | 6.12.9-1 | http://archive.example/debian-security old-security/main amd64 Packages
linux-source-6.12 | 6.12.117-1 | http://archive.example/debian-security old-security/main Sources
"""
NEWER = """\
linux-source-7.2 | 7.2.13-1 | http://archive.example/debian sid/main amd64 Packages
linux-source-6.12 | 6.12.107-1 | http://archive.example/debian stable/main amd64 Packages
"""
NAMES = "linux-source-6.1 - kernel\nlinux-source-6.12 - kernel\nlinux-source-6.1-doc - no source\n"


class FakeApt(Apt):
    """Answers as apt would, and records its calls."""

    def __init__(self, directory: Path, newer: str = NEWER, offline: bool = False) -> None:
        super().__init__(directory)
        self.newer = newer
        self.offline = offline
        self.asked: list[str] = []
        self.settings = directory / "settings.sources"
        self.settings.write_text(SETTINGS)

    def run(self, *command: str) -> str:
        own = "-o" in command
        words = [w for i, w in enumerate(command) if w != "-o" and (i == 0 or command[i - 1] != "-o")]
        self.asked.append(" ".join(words))
        if "indextargets" in words:
            return TARGETS.format(entry=self.settings)
        if "update" in words:
            if self.offline:
                raise KernelError("apt-get update: no network")
            return ""
        if "search" in words:
            return "" if own and (self.offline or not self.newer) else NAMES
        if "madison" in words:
            assert "linux-source-6.1-doc" not in words
            return self.newer if own else SYSTEM
        if "download" in words:
            (self.directory / "download" / "x.deb").touch()
            return ""
        if words[0] == "dpkg":
            place = Path(words[-1]) / "usr" / "src"
            place.mkdir(parents=True)
            (place / "linux-source-7.2.tar.xz").write_text("the sources")
            (place / "linux-patch.xz").write_text("none of them, though it is long")
            return ""
        raise AssertionError(command)


def test_newer_suites_of_the_same_archive_have_separate_lists(tmp_path: Path) -> None:
    apt = FakeApt(tmp_path)
    found = sources.candidates(apt)
    assert [(s.package, s.version, s.own) for s in found] == [
        ("linux-source-7.2", "7.2.13-1", True),
        ("linux-source-6.12", "6.12.117-1", False),
    ]
    asked = (tmp_path / "sources.list").read_text().splitlines()
    assert "deb [signed-by=/keys/archive.gpg] http://archive.example/debian/ unstable main" in asked
    assert len(asked) == 4 and not any("elsewhere" in line or "security" in line for line in asked)
    assert found[1].title == "linux-source-6.12 6.12.117-1 of old-security"


def test_without_network_the_systems_lists_do(tmp_path: Path) -> None:
    found = sources.candidates(FakeApt(tmp_path, offline=True))
    assert [s.version for s in found] == ["6.12.117-1"]


def test_versions_before_6_12_are_no_candidates(tmp_path: Path) -> None:
    old = [
        Source("6.1.192-2", "old", None, "linux-source-6.1"),
        Source("6.11.9-1", "old", None, "linux-source-6.11"),
    ]
    assert sources.newest_first(old) == []


def test_our_lists_are_separate_from_the_systems(tmp_path: Path) -> None:
    options = Apt(tmp_path).own()
    for key in ("Dir::State::lists", "Dir::Cache", "Dir::Etc::SourceList", "Dir::Etc::SourceParts"):
        assert any(option.startswith(f"{key}={tmp_path}") for option in options)


def test_a_package_becomes_a_tarball_in_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIRSTLIGHT_CACHE", str(tmp_path / "cache"))
    apt = FakeApt(tmp_path)
    fetched = sources.fetch(apt, sources.candidates(apt)[0])
    assert fetched.path == tmp_path / "cache/sources/linux-source-7.2_7.2.13-1.tar.xz"
    assert fetched.path.read_text() == "the sources"
    assert "apt-get download -qq linux-source-7.2=7.2.13-1" in apt.asked
    assert [(s.package, s.version, s.path) for s in sources.kept()] == [
        ("linux-source-7.2", "7.2.13-1", fetched.path)
    ]


def test_the_key_of_a_one_line_entry_is_found(tmp_path: Path) -> None:
    settings = tmp_path / "x.list"
    settings.write_text(
        "deb http://other.example/debian x main\n"
        "deb [arch=amd64 signed-by=/keys/one.gpg] http://archive.example/debian x main\n"
    )
    assert sources.signing_key(f"{settings}:2", "http://archive.example/debian/") == "/keys/one.gpg"
    assert sources.signing_key(f"{settings}:1", "http://other.example/debian/") == ""
    assert sources.signing_key("/nowhere/at.all:1", "http://archive.example/debian/") == ""


def test_where_there_is_no_apt_the_error_says_what_to_pass(tmp_path: Path) -> None:
    with pytest.raises(KernelError, match="is not on this system: pass --source"):
        Apt(tmp_path).run("no-such-apt-get", "update")
    with pytest.raises(KernelError, match="false update: failed"):
        Apt(tmp_path).run("false", "-o", "Dir::Cache=x", "update")


def test_a_version_is_read_from_its_tree(tmp_path: Path) -> None:
    (tmp_path / "arch" / "um").mkdir(parents=True)
    (tmp_path / "Makefile").write_text(
        "# x\nVERSION = 7\nPATCHLEVEL = 3\nSUBLEVEL = 0\nEXTRAVERSION = -rc1\n"
    )
    assert sources.version_of(tmp_path) == "7.3.0-rc1"
