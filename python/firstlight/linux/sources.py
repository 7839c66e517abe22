"""Sources of Linux: a tree or tarball of the user's, one in the cache, or a package of the system's archive.

The archive's address comes from apt's own settings. Newer suites of the same archive are asked with lists
kept apart from the system's, so nothing of the system changes and root is not needed.
"""

import contextlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from firstlight.errors import KernelError
from firstlight.linux import kernels

OLDEST = (6, 12)
"""The oldest version that works: 6.1 does not run on processors with AVX-512, whose registers do not fit its
signal stack of one page."""
NEWER_SUITES = {"Debian": ("unstable", "testing", "stable-backports", "stable")}
"""Names of an archive's newer suites, by its origin."""
VERSION = re.compile(r"\d+(\.\d+)+")
PACKAGE = re.compile(r"linux-source-(\d+\.\d+(?:\.\d+)?)")
TARBALL = re.compile(r"\.tar(\.xz|\.gz|\.bz2|\.zst)?$|\.tgz$")


@dataclass(frozen=True)
class Source:
    """Sources that can be built: a tarball or a tree at ``path``, or a package that is not yet downloaded."""

    version: str
    title: str
    path: Path | None = None
    package: str = ""
    own: bool = False
    """Whether the package is in our own lists, not in the system's."""


@dataclass(frozen=True)
class Archive:
    """A package archive, as apt's settings describe it."""

    uri: str
    origin: str
    component: str
    signed_by: str = ""
    release: str = ""


def named(text: str) -> Source:
    """The tree or tarball that the user names."""
    path = Path(text).absolute()
    if path.is_dir():
        return Source(version_of(path), str(path), path)
    if path.is_file() and TARBALL.search(path.name):
        return Source("", str(path), path)
    if path.exists():
        raise KernelError(
            f"{path}: neither a source tree nor a tarball (.tar.xz, .tar.gz, .tar.bz2, .tar.zst)"
        )
    raise KernelError(f"{path}: no such file; --source takes auto, a version, a source tree or a tarball")


def version_of(tree: Path) -> str:
    """``7.2.13`` of a source tree."""
    try:
        head = (tree / "Makefile").read_text(encoding="utf-8", errors="replace")[:2000]
    except OSError:
        raise KernelError(f"{tree}: not a source tree of Linux (it has no Makefile)") from None
    parts = dict(re.findall(r"^(VERSION|PATCHLEVEL|SUBLEVEL|EXTRAVERSION) *= *(\S*)", head, re.MULTILINE))
    if not {"VERSION", "PATCHLEVEL"} <= set(parts) or not (tree / "arch" / "um").is_dir():
        raise KernelError(f"{tree}: not a source tree of Linux")
    sublevel, extra = parts.get("SUBLEVEL") or "0", parts.get("EXTRAVERSION", "")
    return f"{parts['VERSION']}.{parts['PATCHLEVEL']}.{sublevel}{extra}"


def refuse_old(version: str) -> None:
    """Raise :class:`KernelError` when ``version`` is known not to work."""
    if kernels.number(version)[:2] < OLDEST:
        raise KernelError(
            f"Linux {version} is too old: 6.12 or newer is needed (older ones do not run on processors with "
            "AVX-512: their signal stack is too small)"
        )


# ---- The cache ----


def kept() -> list[Source]:
    """Sources of packages in the cache, newest first."""
    found = []
    for file in (kernels.cache() / "sources").glob("linux-source-*_*.tar*"):
        package, _, rest = file.name.partition("_")
        version = TARBALL.sub("", rest)
        found.append(Source(version, f"{package} {version}", file, package))
    return newest_first(found)


def newest_first(found: Sequence[Source]) -> list[Source]:
    """The sources that can work, the newest first; of each package its newest version."""
    usable = [s for s in found if kernels.number(s.version)[:2] >= OLDEST]
    ordered = sorted(usable, key=lambda s: kernels.number(s.version), reverse=True)
    return list({s.package: s for s in reversed(ordered)}.values())[::-1]


# ---- The archive ----


class Apt:
    """The system's apt, with lists of its own in a temporary directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        for name in ("lists/partial", "cache/archives/partial", "sources.d", "download"):
            (directory / name).mkdir(parents=True, exist_ok=True)

    def own(self) -> list[str]:
        """Options by which apt keeps everything in our directory."""
        settings = {
            "Dir::State::lists": self.directory / "lists",
            "Dir::Cache": self.directory / "cache",
            "Dir::Etc::SourceList": self.directory / "sources.list",
            "Dir::Etc::SourceParts": self.directory / "sources.d",
            "Acquire::Languages": "none",
            "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled": "false",
            "Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled": "false",
            "APT::Sandbox::User": "root",
            "Acquire::Retries": "2",
        }
        return [word for key, value in settings.items() for word in ("-o", f"{key}={value}")]

    def run(self, *command: str) -> str:
        """Output of one of apt's commands; :class:`KernelError` when it fails."""
        try:
            done = subprocess.run(
                command,
                cwd=self.directory / "download",
                text=True,
                capture_output=True,
                stdin=subprocess.DEVNULL,
                env={**os.environ, "LC_ALL": "C"},
            )
        except FileNotFoundError:
            raise KernelError(f"{command[0]} is not on this system: {elsewhere()}") from None
        if done.returncode != 0:
            why = (done.stderr.strip() or done.stdout.strip()).splitlines()
            words = " ".join(word for word in command if "::" not in word and word != "-o")
            raise KernelError(f"{words}: {why[-1] if why else 'failed'}")
        return done.stdout


def elsewhere() -> str:
    """The message where there is no archive."""
    return "pass --source with a tree or tarball of Linux 6.12 or newer (7.2 is known to work)"


def archives(apt: Apt) -> list[Archive]:
    """The archives of the system's settings."""
    listing = apt.run("apt-get", "indextargets", "Created-By: Packages")
    found = []
    for stanza in listing.strip().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in stanza.splitlines() if ": " in line)
        if uri := fields.get("Repo-URI"):
            found.append(
                Archive(
                    uri,
                    fields.get("Origin", ""),
                    fields.get("Component", "main"),
                    fields.get("Signed-By") or signing_key(fields.get("Sourcesentry", ""), uri),
                    fields.get("Release", ""),
                )
            )
    return list(dict.fromkeys(found))


def signing_key(entry: str, uri: str) -> str:
    """The key file that the settings' entry ``file:line`` names for ``uri``; empty when it names none."""
    try:
        text = Path(entry.rpartition(":")[0]).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    blocks = text.split("\n\n") if re.search(r"^Types:", text, re.MULTILINE) else text.splitlines()
    for block in blocks:
        if uri.rstrip("/") in block and (
            key := re.search(r"signed-by\s*[:=]\s*(/[^\s\]]+)", block, re.IGNORECASE)
        ):
            return key[1]
    return ""


def offered(apt: Apt, own: bool = False) -> list[Source]:
    """The source packages in apt's lists: the system's, or our own."""
    options = apt.own() if own else []
    names = apt.run("apt-cache", *options, "search", "--names-only", "^linux-source-[0-9.]+$")
    packages = [name for line in names.splitlines() if PACKAGE.fullmatch(name := line.split(" ")[0])]
    if not packages:
        return []
    found = []
    for line in apt.run("apt-cache", *options, "madison", *packages).splitlines():
        fields = [field.strip() for field in line.split("|")]
        if len(fields) == 3 and not fields[2].endswith("Sources"):
            package, version, place = fields
            suite = place.split(" ")[1].split("/")[0]
            found.append(Source(version, f"{package} {version} of {suite}", None, package, own))
    return newest_first(found)


def newer_suites(apt: Apt) -> list[Source]:
    """The source packages of newer suites of an archive that the system uses already."""
    lines = set()
    for archive in archives(apt):
        if "security" not in archive.uri:
            option = f"[signed-by={archive.signed_by}] " if archive.signed_by else ""
            suites = NEWER_SUITES.get(archive.origin, ())
            lines |= {f"deb {option}{archive.uri} {suite} main\n" for suite in suites}
    if not lines:
        return []
    (apt.directory / "sources.list").write_text("".join(sorted(lines)), encoding="utf-8")
    with contextlib.suppress(KernelError):  # an archive need not have them all
        apt.run("apt-get", *apt.own(), "update", "-qq")
    return offered(apt, own=True)


def candidates(apt: Apt) -> list[Source]:
    """All packages that can work, the newest first."""
    return newest_first([*offered(apt), *newer_suites(apt)])


@contextlib.contextmanager
def private_apt() -> Iterator[Apt]:
    """Apt with a temporary directory for its lists and downloads."""
    parent = kernels.cache()
    parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".apt-", dir=parent) as directory:
        yield Apt(Path(directory))


def fetch(apt: Apt, source: Source) -> Source:
    """Download the package of ``source`` and keep its tarball in the cache."""
    options = apt.own() if source.own else []
    apt.run("apt-get", *options, "download", "-qq", f"{source.package}={source.version}")
    downloads = apt.directory / "download"
    package = next(iter(downloads.glob("*.deb")))
    apt.run("dpkg", "-x", str(package), str(downloads / "unpacked"))
    package.unlink()
    tarballs = [
        f for f in (downloads / "unpacked/usr/src").rglob("*") if TARBALL.search(f.name) and f.is_file()
    ]
    if not tarballs:
        raise KernelError(f"{source.title}: the package holds no tarball; {elsewhere()}")
    tarball = max(tarballs, key=lambda f: f.stat().st_size)
    ending = TARBALL.search(tarball.name)
    place = kernels.cache() / "sources" / f"{source.package}_{source.version}{ending[0] if ending else ''}"
    place.parent.mkdir(parents=True, exist_ok=True)
    os.replace(tarball, place)
    shutil.rmtree(downloads / "unpacked")
    return Source(source.version, source.title, place, source.package)
