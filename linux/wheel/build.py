"""Makes the wheel ``firstlight-kernel`` from kernels in the cache: ``make kernel-wheel`` runs it.

The kernels are those of this checkout's sources and of one version, of any ticks. Our part of their source
lies in the wheel, with the license and the offer that the GPL asks for.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from firstlight.errors import FirstlightError
from firstlight.linux import kernels

HERE = Path(__file__).resolve().parent
DIST = HERE.parents[1] / "dist"
KEPT = (kernels.MANIFEST, kernels.BINARY, kernels.MODULES, "config")
"""What a kernel's directory has that a run or the license needs."""


def main() -> None:
    """Write the wheel into ``dist``."""
    newest = kernels.find(250)
    chosen = [
        k for k in kernels.built() if k.version == newest.version and k.hash == kernels.source_hash(k.hz)
    ]
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder, "project")
        stage(project, chosen)
        subprocess.run(
            [sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", folder, str(project)],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        made = next(Path(folder).glob("*.whl"))
        platform = f"manylinux_2_{max(map(glibc, chosen))}_x86_64"
        words = ["tags", "--remove", "--platform-tag", platform, str(made)]
        subprocess.run([sys.executable, "-m", "wheel", *words], check=True, stdout=subprocess.DEVNULL)
        made = next(Path(folder).glob("*.whl"))
        DIST.mkdir(exist_ok=True)
        shutil.copy(made, DIST / made.name)
    print(f"{DIST / made.name}: {', '.join(f'Linux {k.version} of {k.hz} Hz' for k in chosen)}")


def stage(project: Path, chosen: list[kernels.Kernel]) -> None:
    """Copy what the wheel holds into a new directory ``project``."""
    shutil.copytree(HERE, project, ignore=shutil.ignore_patterns("build.py", "__pycache__"))
    shutil.copy(kernels.folder_of_linux() / "kernel" / "LICENSE", project / "COPYING")
    first = chosen[0]
    (project / "VERSION").write_text(first.version)
    offer = (HERE / "SOURCE.txt").read_text()
    series = ".".join(first.version.split(".")[:2])
    source = first.manifest.get("source", "")
    (project / "SOURCE.txt").write_text(offer.format(version=first.version, source=source, series=series))
    package = project / "firstlight_kernel"
    for kernel in chosen:
        for name in KEPT:
            of, to = kernel.path / name, package / "kernels" / kernel.path.name / name
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copytree(of, to) if of.is_dir() else shutil.copy2(of, to)
    linux = kernels.folder_of_linux()
    for file in kernels.driver_sources(linux) + kernels.module_sources(linux):
        to = package / "source" / file.relative_to(linux)
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, to)


def glibc(kernel: kernels.Kernel) -> int:
    """The newest version 2.N of the C library that a kernel names."""
    return max(int(n) for n in re.findall(rb"GLIBC_2\.(\d+)", kernel.binary.read_bytes()))


if __name__ == "__main__":
    try:
        main()
    except FirstlightError as e:
        sys.exit(f"error: {e}")
