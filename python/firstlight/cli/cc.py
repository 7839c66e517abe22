"""The command ``firstlight cc``."""

import importlib.util
import re
import shlex
import shutil
from pathlib import Path

import click

from firstlight import _core
from firstlight.core import named
from firstlight.errors import PlanError, ResultError, SpecError
from firstlight.folders import folder
from firstlight.runs.staging import unwritable

TAKEN = re.compile(
    "abstract|alloc|as|async|await|become|box|break|const|continue|core|crate|do|dyn|else|enum|extern|false|"
    "final|fn|for|gen|if|impl|in|let|loop|macro|match|mod|move|mut|override|priv|proc_macro|pub|ref|return|self|"
    "static|std|struct|super|test|trait|true|try|type|typeof|unsafe|unsized|use|virtual|where|while|yield"
)
"""Words of Rust and names of its own crates, which no crate can have."""
MANIFEST = """\
[package]
name = "{name}"
version = "0.1.0"
edition = "2024"

[lib]
crate-type = ["cdylib"]

[dependencies]
firstlight-cc = {{ path = "{path}" }}

[workspace]
"""
SOURCE = """\
//! NewReno (RFC 5681) that falls to three quarters of its window instead of a half.

use firstlight_cc::{Ack, CongestionControl, Window};

#[derive(Default)]
pub struct Mine {}

impl CongestionControl for Mine {
    fn grow(&mut self, window: &mut Window, ack: &Ack) {
        let left = if window.in_slow_start() { window.slow_start(ack.delivered) } else { ack.delivered };
        if left > 0 {
            window.additive_increase(window.cwnd, left);
        }
    }

    fn ssthresh(&mut self, window: &Window, _marked: bool) -> u32 {
        (window.cwnd * 3 / 4).max(window.floor)
    }
}

firstlight_cc::congestion_control!(Mine);
"""


@click.group()
def cc() -> None:
    """A congestion control of one's own: begin one in Rust, check one in Rust or Python."""


@cc.command("new")
@click.argument("name")
def new(name: str) -> None:
    """Write a crate NAME with a controller, for tcp.cc = "NAME/target/release/libNAME.so"."""
    if not re.fullmatch("[a-z][a-z0-9_]{0,63}", name):
        raise PlanError(f"{name!r}: name the crate with lower-case letters, digits and _, a letter first")
    if TAKEN.fullmatch(name):
        raise PlanError(f"{name!r}: is a word of Rust; write another name, such as my_{name}")
    try:
        str(Path.cwd()).encode()
    except UnicodeEncodeError:
        raise ResultError(f"{named(Path.cwd())}: its name is not UTF-8; use another directory") from None
    crate = Path(name)
    if crate.exists():
        raise ResultError(f"{crate}: exists; choose another name, or remove it")
    interface = folder("crates") / "cc"
    if not interface.is_dir():
        raise ResultError(f"{interface}: the crate firstlight-cc is missing; install Firstlight anew")
    files = {"Cargo.toml": MANIFEST.format(name=name, path=interface), "src/lib.rs": SOURCE}
    try:
        crate.mkdir()
        try:
            for file, text in files.items():
                (crate / file).parent.mkdir(exist_ok=True)
                (crate / file).write_text(text)
        except BaseException:
            shutil.rmtree(crate, ignore_errors=True)
            raise
    except OSError as e:
        raise unwritable(crate, e) from None
    click.echo(f"wrote {name}/src/lib.rs. Next:")
    click.echo(f"  cargo build --release --manifest-path {name}/Cargo.toml")
    click.echo(f"  firstlight cc check {name}/target/release/lib{name}.so")
    setting = f"tcp.cc={crate.absolute()}/target/release/lib{name}.so"
    click.echo(f"  firstlight run FILE --set {shlex.quote(setting)}")


@cc.command("check")
@click.argument("controller")
@click.option(
    "--cases", type=click.IntRange(1, 1_000_000), default=1000, show_default=True, help="Sequences to try."
)
def check(controller: str, cases: int) -> None:
    """Check CONTROLLER, a shared object (libmine.so), the crate that it is built in (mine) or a class in a
    Python file (mine.py:Mine), for the properties that every controller has."""
    found = _core_check(controller, cases)
    if found is not None:
        raise ResultError(f"{controller}: {found}")
    click.echo(
        f"{controller}: no property is broken in {cases} random sequences of ACKs, losses and timeouts"
    )


def _core_check(controller: str, cases: int) -> str | None:
    try:
        return _core.check_controller(loaded(controller), cases)
    except _core.SpecError as e:
        raise SpecError(str(e)) from None


def loaded(controller: str) -> str | type:
    """The path of a shared object as it is, that of a crate's folder, or a class of a Python file loaded;
    raises :class:`PlanError`."""
    if controller.endswith(".so"):
        return controller
    if (crate := Path(controller) / "Cargo.toml").is_file():
        built = crate.parent / "target/release" / f"lib{crate.absolute().parent.name}.so"
        if not built.is_file():
            raise PlanError(f"{built}: not built yet: cargo build --release --manifest-path {crate}")
        return str(built)
    path, _, name = controller.rpartition(":")
    if not path.endswith(".py") or not name:
        raise PlanError(f"{controller}: name a shared object, libmine.so, or a class in a file, mine.py:Mine")
    spec = importlib.util.spec_from_file_location(Path(path).stem, path)
    assert spec is not None and spec.loader is not None, "the name of a Python file has a loader"
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except FileNotFoundError:
        raise PlanError(f"{path}: no such file") from None
    except Exception as e:
        raise PlanError(f"{path}: cannot be imported: {type(e).__name__}: {e}") from None
    found = getattr(module, name, None)
    if not isinstance(found, type):
        raise PlanError(f"{path}: has no class {name}")
    return found
