"""The commands ``firstlight reproduce | list | report``."""

import time
from pathlib import Path
from typing import get_args

import click
from rich.table import Table

from firstlight.claims import read
from firstlight.claims import reproduce as reproductions
from firstlight.claims.form import Mode
from firstlight.cli.console import console, print_rows, print_scoreboard
from firstlight.cli.options import File, jobs_option, part_of, patience_option, shard_options
from firstlight.cli.progress import Tracker
from firstlight.errors import PlanError
from firstlight.runs import pool, shards
from firstlight.runs.run import HOSTS
from firstlight.runs.sweep import STORE


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--quick", is_flag=True, help="Short runs (default).")
@click.option("--full", is_flag=True, help="The paper's lengths and all points.")
@click.option("--json", "as_json", is_flag=True, help="Print every number as JSON instead of the scoreboard.")
@click.option("--table", is_flag=True, help="Print every number as a table before the scoreboard.")
@click.option(
    "--out",
    type=File,
    default=Path("results"),
    show_default=True,
    help="Directory of points, figures and report.",
)
@click.option(
    "--hosts",
    type=click.Choice(HOSTS),
    default="simulated",
    show_default=True,
    help="linux: on Linux hosts too, beside the simulated ones.",
)
@jobs_option
@shard_options
@patience_option
def reproduce(
    names: tuple[str, ...],
    quick: bool,
    full: bool,
    as_json: bool,
    table: bool,
    out: Path,
    hosts: str,
    jobs: int | None,
    shard: str | None,
    status: bool,
    collect: bool,
    patience: float,
) -> None:
    """Reproduce published figures (all, or those named as in `firstlight list`) and judge what the papers say
    of them."""
    from firstlight.pages import report

    started = time.monotonic()
    part = part_of(shard, status, collect)
    if quick and full:
        raise PlanError("--quick and --full are two lengths of runs: give one of them")
    mode: Mode = "full" if full else "quick"
    chosen = read.select(read.find(), names)
    points = reproductions.plan(chosen, mode, HOSTS if hosts == "linux" else ("simulated",))
    every, store = list(points.values()), out / STORE
    if status:
        click.echo(shards.status(every, store))
        return
    if collect:
        shards.collected(every, store)
    click.echo(f"{len(chosen)} reproductions, {len(points)} runs", err=True)
    mine = part.of(every) if part else every
    with Tracker.of_points(f"reproducing ({mode})", mine, store) as tracker:
        means = pool.Means(jobs, listener=tracker.on_point, patience=patience)
        if part:
            reproductions.run_shard(points, out, part, means)
            click.echo(f"shard {shard}: {len(mine)} of {len(every)} points are in {store}")
            return
        done = reproductions.run(chosen, mode, points, out, means)
    page = report.write_reproduction(done)
    if as_json:
        click.echo(reproductions.as_json(done), nl=False)
    else:
        if table:
            print_rows(console(wide=True), done)
        print_scoreboard(console(wide=True), done)
    click.echo(f"\nreport: {page} ({time.monotonic() - started:.0f} s)", err=as_json)


@click.command("list")
def list_() -> None:
    """List the reproductions."""
    table = Table(box=None, pad_edge=False)
    for column in ("name", "figure", "section", "runs quick/full", "on Linux", "what"):
        table.add_column(column, no_wrap=column != "what")
    for claim in read.find():
        counts = ["/".join(str(len(claim.runs(mode, [h]))) for mode in get_args(Mode)) for h in HOSTS]
        table.add_row(claim.name, claim.display, claim.section, *counts, claim.title)
    console(wide=True).print(table)


@click.command()
@click.argument("directory", type=File)
def report(directory: Path) -> None:
    """Write the HTML report of DIRECTORY: a result, a sweep, a comparison or a reproduction."""
    from firstlight.pages import report as reports

    click.echo(f"report: {reports.write(directory)}")
