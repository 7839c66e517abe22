"""Kernel modules of the user's own: built for a kernel of the cache, kept there, and copied into each run.

What a build reads of the kernel's tree is packed beside the kernel, in ``tree.tar.xz``. It is unpacked into
a temporary directory for a build, with a copy of the module's sources, so that nothing is written there.
"""

import contextlib
import hashlib
import os
import re
import shutil
import tarfile
from collections.abc import Sequence
from pathlib import Path

from firstlight.errors import KernelError
from firstlight.linux import kernels, tools, workplaces
from firstlight.linux.commands import TROUBLE, follow
from firstlight.linux.kernels import Kernel
from firstlight.linux.own_code import Code

TREE = kernels.TREE
ORDER = "modules.order"
HEADERS = ("include", "arch/um/include", "arch/x86/include", "arch/x86/um")
UNUSED = re.compile(
    r"include/((uapi/)?(drm|media|rdma|scsi|sound|video|xen)|dt-bindings|soc"
    r"|linux/(iio|mfd|mlx4|mlx5|platform_data|soc|usb))/"
)
"""Headers of the tree that no module for these hosts includes: they are of devices."""
OTHERS = (
    *("Makefile", "Kbuild", ".config", "Module.symvers", "arch/um/Makefile*", "arch/x86/Makefile*"),
    *("include/config/auto.conf", "include/config/kernel.release", "include/generated/rustc_cfg"),
    *("scripts/Kbuild.include", "scripts/Makefile.*", "scripts/*.sh", "scripts/*.include"),
    *("scripts/module.lds", "scripts/module-common.c", "scripts/mod/modpost", "scripts/basic/fixdep"),
)
"""Further files that a build of a module reads."""
NEEDED = ("make", "gcc", "ld", "tar", "xz")
"""Programs that a build of a module needs, of those that a kernel's build needs."""
ERRORS = re.compile(r"^[^\s:]+:\d+(:\d+)?: (fatal )?error: |^ERROR: modpost: ")
SHOWN = 10
"""Lines of errors that a message has at most."""


def folder() -> Path:
    """The directory of modules that were built."""
    return kernels.cache() / "modules"


def pack(tree: Path, target: Path) -> None:
    """Pack what a build of a module reads of the kernel's ``tree``, which is built and prepared for it."""
    headers = (file for folder in HEADERS for file in (tree / folder).rglob("*.h"))
    others = (file for pattern in OTHERS for file in tree.glob(pattern))
    with tarfile.open(target, "w:xz", preset=2) as archive:
        for file in sorted({*headers, *others}):
            name = file.relative_to(tree).as_posix()
            if not UNUSED.match(name):
                archive.add(file, name, recursive=False)


def of(modules: Sequence[Code], kernel: Kernel) -> list[Path]:
    """The modules as files that the kernel loads, in this order; those that are sources are built unless they
    are in the cache. Raises :class:`KernelError` with what is wrong, and where."""
    files = []
    for module in modules:
        files += built(module, kernel) if module.sources else [checked(module, kernel)]
    names = [file.name for file in files]
    if twice := {name for name in names if names.count(name) > 1}:
        raise KernelError(f"{modules[0].place}: two modules are called {min(twice)}: rename one")
    return files


def checked(module: Code, kernel: Kernel) -> Path:
    """A built module, if it is one for this kernel."""
    found = magic(module.path)
    if not found:
        raise module.error("not a kernel module")
    own = next(filter(None, map(magic, sorted(kernel.modules.glob("*.ko")))), found)
    if found != own:
        raise module.error(
            f"built for the kernel '{found}', and that of the hosts is '{own}'; name the directory with its "
            "Kbuild instead: it is built for the hosts' kernel"
        )
    return module.path


def magic(file: Path) -> str:
    """The kernel for which a module is built, as the module says; empty where it is no module."""
    content = file.read_bytes()
    said = re.search(rb"\0vermagic=([^\0]*)\0", content) if content.startswith(b"\x7fELF") else None
    return said[1].decode(errors="replace").strip() if said else ""


def built(module: Code, kernel: Kernel) -> list[Path]:
    """The modules of a directory, built unless they are in the cache."""
    if not kernel.tree.is_file():
        raise module.error(
            f"{kernel.path} has nothing to build modules with (kernels of the package firstlight-kernel, and "
            f"older ones, have not): run `firstlight kernel build --hz {kernel.hz}` (about 5 minutes, once)"
        )
    contents = {name: (module.path / name).read_bytes() for name in module.sources}
    digest = hashlib.sha256(f"{kernel.version} {kernel.hz} {kernel.hash}\n".encode())
    for name, content in contents.items():
        digest.update(f"{name} {len(content)}\n".encode() + content)
    target = folder() / digest.hexdigest()[:16]
    if not target.is_dir():
        tools.require({tool: tools.BUILD[tool] for tool in NEEDED})
        with workplaces.only_one(folder()), workplaces.workplace(folder()) as work:
            if not target.is_dir():  # another process may have built it meanwhile
                os.replace(build(module, contents, kernel, work), target)
    return [target / name for name in (target / ORDER).read_text().split()]


def build(module: Code, contents: dict[str, bytes], kernel: Kernel, work: Path) -> Path:
    """Build the modules of a directory in ``work``: a directory with them, and their order."""
    tree, sources, made = (work / name for name in ("tree", "module", "made"))
    tree.mkdir()
    made.mkdir()
    for name, content in contents.items():
        (sources / name).parent.mkdir(parents=True, exist_ok=True)
        (sources / name).write_bytes(content)
    lines: list[str] = []
    for command in (
        ["tar", "xf", str(kernel.tree), "-C", str(tree)],
        ["make", f"-j{os.cpu_count() or 1}", "ARCH=um", "-C", str(tree), f"M={sources}", "modules"],
    ):
        code, last = follow(command, work, lines.append, lambda _: None)
        if code:
            raise module.error("\n".join(["does not compile:", *errors(lines, sources, module.path, last)]))
    order = sources / ORDER
    names = [Path(line).stem for line in order.read_text().split()] if order.is_file() else []
    if not names:
        raise module.error("its Kbuild makes no module: write obj-m := NAME.o, for a module from NAME.c")
    for name in names:
        file = next(sources.rglob(f"{name}.ko"))
        follow(["strip", "--strip-debug", str(file)], work, lines.append, lambda _: None)
        shutil.copy(file, made)
    (made / ORDER).write_text("".join(f"{name}.ko\n" for name in names))
    return made


def errors(lines: Sequence[str], sources: Path, path: Path, last: str) -> list[str]:
    """Lines that say why a build failed, with the files where the user has them."""
    found = [line.strip() for line in lines if ERRORS.search(line)] or [
        line.strip() for line in lines if TROUBLE.search(line)
    ]
    return [placed(line, sources, path) for line in found[:SHOWN]] or [last or "it says nothing"]


def placed(line: str, sources: Path, path: Path) -> str:
    """A line of the compiler's with the file where the user has it."""
    line = line.replace(f"{sources}/", "")
    file, colon, rest = line.partition(":")
    with contextlib.suppress(OSError):
        if colon and (sources / file).is_file():
            return f"{path / file}:{rest}"
    return line
