"""The commands ``firstlight kernel build | list`` and ``firstlight doctor``."""

import json
from pathlib import Path

import click
from rich.table import Table
from rich.text import Text

from firstlight.cli.console import console
from firstlight.cli.options import json_option
from firstlight.cli.progress import Tracker


@click.group()
def kernel() -> None:
    """Kernels for Linux hosts in virtual time: build them, list them."""


@kernel.command()
@click.argument("experiment", required=False)
@click.option(
    "--source",
    default="auto",
    show_default=True,
    metavar="auto|VERSION|DIR|TARBALL",
    help="Sources of Linux, 6.12 or newer; auto: the newest of the system's package archive that builds; a "
    "version, as 6.12: the newest of these there.",
)
@click.option(
    "--hz",
    type=click.Choice(["100", "250", "1000"]),
    default="250",
    show_default=True,
    help="Ticks per second: 250 for tcp.tick = 4ms.",
)
@click.option(
    "--patch",
    "patches",
    multiple=True,
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A patch of your own, for linux.patches; several are applied in this order.",
)
@click.option("--jobs", type=click.IntRange(min=1), help="Compilers side by side (default: all cores).")
@click.option("--force", is_flag=True, help="Build again what is built.")
def build(
    experiment: str | None, source: str, hz: str, patches: tuple[Path, ...], jobs: int | None, force: bool
) -> None:
    """Build a kernel into the cache (about 5 minutes on 2 cores, 1 GB of disk meanwhile). Root is not needed.

    With the file of an EXPERIMENT it is the kernel that this one runs on: of its tcp.tick, linux.version and
    linux.patches."""
    from firstlight.linux import build as builder

    if experiment is not None:
        source, hz, patches = builder.wanted_by(experiment)
    with Tracker("building the kernel") as tracker:
        made = builder.build(
            source,
            int(hz),
            jobs,
            force,
            say=tracker.say,
            progress=tracker.on_fraction,
            patches=patches,
        )
    mode = "seccomp" if made.seccomp else "ptrace"
    click.echo(f"Linux {made.version}, {made.hz} Hz, {mode} mode: {made.path}")


@kernel.command("list")
@json_option
def list_(as_json: bool) -> None:
    """List the kernels that are built."""
    from firstlight.linux import kernels

    found = kernels.built()
    if as_json:
        click.echo(json.dumps([{**k.manifest, "path": str(k.path)} for k in found], indent=2))
        return
    if not found:
        click.echo(f"no kernel in {kernels.folder()}; `firstlight kernel build` builds one", err=True)
        return
    table = Table(box=None, pad_edge=False)
    for column in ("version", "Hz", "mode", "from this checkout", "source", "directory"):
        table.add_column(column, overflow="fold")
    for k in found:
        ours = "yes" if k.is_current else "no: build again"
        mode = "seccomp" if k.seccomp else "ptrace"
        table.add_row(
            k.version,
            str(k.hz),
            mode,
            ours,
            " + ".join([str(k.manifest.get("source", "")), *k.manifest.get("patches", ())]),
            str(k.path),
        )
    console(wide=True).print(table)


@click.command()
@click.option("--clear", metavar="WHAT", help="Remove kernels, sources, leftovers or another group.")
def cache(clear: str | None) -> None:
    """List what the cache holds: kernels, their sources, leftovers of killed builds and runs."""
    from firstlight.linux import cached, kernels

    if clear:
        click.echo(f"{clear}: {cached.clear(clear) / 1e6:.0f} MB cleared")
        return
    table = Table(box=None, pad_edge=False)
    for column in ("what", "MB", "where"):
        table.add_column(column, overflow="fold", justify="right" if column == "MB" else "left")
    for entry in cached.contents():
        table.add_row(entry.group, f"{entry.size / 1e6:.0f}", str(entry.path))
    console(wide=True).print(table)
    click.echo(f"cache: {kernels.cache()} (another one: FIRSTLIGHT_CACHE)", err=True)


@click.command()
@json_option
@click.option("--measure-cpu", is_flag=True, help="Print this machine's [linux.cpu] instead.")
def doctor(as_json: bool, measure_cpu: bool) -> None:
    """Show what this machine can run; for what it cannot run, why and what to do."""
    from firstlight.dilated import machine
    from firstlight.linux import doctor as doctors
    from firstlight.linux import processor

    if measure_cpu:
        measured = processor.measure()
        click.echo(json.dumps(measured, indent=2) if as_json else processor.as_toml(measured))
        return
    checks = [*doctors.examine(), *machine.examine()]
    if as_json:
        click.echo(json.dumps(doctors.as_json(checks), indent=2))
        return
    out = console(wide=True)
    for way, works in doctors.able(checks).items():
        out.print(Text.assemble((way, "bold"), ": ", ("yes", "green") if works else ("no", "red")))
        table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
        table.add_column(width=4)
        table.add_column(no_wrap=True, min_width=24)
        table.add_column(overflow="fold")
        table.add_column(overflow="fold")
        for check in (c for c in checks if c.way == way):
            bad = ("no", "red") if check.needed else ("-", "yellow")
            sign = Text.assemble("  ", "+" if check.ok else bad)
            table.add_row(sign, check.name, check.found, check.todo and f"-> {check.todo}")
        out.print(table)
