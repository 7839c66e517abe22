"""The command line: ``firstlight run | sweep | compare | schedule | goal | reproduce | list | report |
inspect | kernel | doctor``.

Results go to standard output, progress and errors to standard error. Exit code 0: done; 2: wrong input; 1: a
run failed; 130: Ctrl-C.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import click
from rich.console import Console

from firstlight import core
from firstlight.cli.goal import goal
from firstlight.cli.linux import doctor, kernel
from firstlight.cli.schedule import schedule
from firstlight.errors import FirstlightError, RunError, SpecError

File = click.Path(path_type=Path)
set_option = click.option(
    "--set",
    "settings",
    metavar="KEY=VALUE",
    multiple=True,
    help="Replace a key of the file, e.g. voq.large=50.",
)
hosts_option = click.option(
    "--hosts",
    type=click.Choice(["simulated", "linux"]),
    help="Whose TCP the hosts run; the same as --set hosts.kind=...",
)
patience_option = click.option(
    "--patience",
    type=click.FloatRange(min=0, min_open=True),
    default=core.PATIENCE,
    show_default=True,
    metavar="SECONDS",
    help="How long the virtual time of Linux hosts may stand still before a run is ended.",
)
jobs_option = click.option(
    "--jobs", type=click.IntRange(min=1), help="Runs side by side (default: all cores)."
)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(core.version(), prog_name="firstlight")
def app() -> None:
    """A laboratory for datacenter transport: how will this transport behave on that fabric?"""


@app.command()
@click.argument("file", type=File)
@set_option
@hosts_option
@click.option("--out", type=File, help="Directory of the result (default: results/runs/<name>-<hash>).")
@click.option("--capture", is_flag=True, help="Store the packets too, as pcapng.")
@patience_option
def run(
    file: Path,
    settings: tuple[str, ...],
    hosts: str | None,
    out: Path | None,
    capture: bool,
    patience: float,
) -> None:
    """Run the experiment in FILE and print its summary."""
    from firstlight.cli.progress import Tracker
    from firstlight.pages.tables import print_summary
    from firstlight.runs import run as api

    overrides = parse_settings(settings, hosts)
    spec = core.Spec.read(file, overrides)
    name = core.inspect(spec).get("name") or file.stem
    target = out or Path("results") / "runs" / f"{name}-{spec.key()[:8]}"
    with Tracker(f"running {name}") as tracker:
        result = api.run(
            file, overrides, out=target, capture=capture, progress=tracker.on_fraction, patience=patience
        )
    print_summary(console(), result)
    click.echo(f"stored in {target}")
    if result.invalid:
        raise click.ClickException(f"this run is invalid: {'; '.join(result.invalid)}")


@app.command()
@click.argument("file", type=File)
@set_option
@hosts_option
@click.option("--out", type=File, help="Directory of the points and the table (default: results/<name>).")
@jobs_option
@patience_option
def sweep(
    file: Path,
    settings: tuple[str, ...],
    hosts: str | None,
    out: Path | None,
    jobs: int | None,
    patience: float,
) -> None:
    """Run FILE at every point of its [sweep] table; points that are finished are not run again."""
    from firstlight.cli.progress import Tracker
    from firstlight.runs import pool
    from firstlight.runs import sweep as sweeps

    overrides = parse_settings(settings, hosts)
    spec = core.Spec.read(file, overrides, sweep=True)
    points = sweeps.points_of(spec, sweeps.axes_of(spec))
    directory = sweeps.directory_of(spec, out)
    todo = pool.pending(points, directory / sweeps.STORE)
    click.echo(f"{len(points)} points, {len(points) - len(todo)} of them finished before", err=True)
    with Tracker.of_points("sweeping", todo) as tracker:
        done = sweeps.sweep(
            file, overrides, out=directory, jobs=jobs, listener=tracker.on_point, patience=patience
        )
    columns = [*done.axes, *(c for c in sweeps.SHOWN if c in done.frame)]
    click.echo(done.frame[columns].to_string(index=False, float_format=lambda v: f"{v:.4g}"))
    click.echo(f"stored in {directory} (table: {directory / sweeps.TABLE})")


@app.command()
@click.argument("file", type=File)
@set_option
@click.option(
    "--out", type=File, help="Directory of both results and the page (default: results/compare/<name>)."
)
@jobs_option
@patience_option
def compare(
    file: Path, settings: tuple[str, ...], out: Path | None, jobs: int | None, patience: float
) -> None:
    """Run FILE on simulated and on Linux hosts and show both, overlaid, and how far they lie apart."""
    from firstlight.cli.progress import Tracker
    from firstlight.pages import report
    from firstlight.pages.tables import print_comparison
    from firstlight.runs import compare as comparison
    from firstlight.runs import pool

    overrides = parse_settings(settings)
    spec = core.Spec.read(file, overrides)
    directory = comparison.directory_of(spec, out)
    todo = pool.pending(comparison.points_of(spec), directory / comparison.STORE)
    with Tracker.of_points("comparing", todo) as tracker:
        done = comparison.compare(
            file, overrides, out=directory, jobs=jobs, listener=tracker.on_point, patience=patience
        )
    print_comparison(console(), done)
    click.echo(f"page: {report.write_comparison(done)}")


@app.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option(
    "--quick/--full",
    "quick",
    default=True,
    help="Short runs (default), or the paper's lengths and all points.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the rows as JSON instead of a table.")
@click.option(
    "--out",
    type=File,
    default=Path("results"),
    show_default=True,
    help="Directory of points, figures and report.",
)
@click.option(
    "--hosts",
    type=click.Choice(["simulated", "linux"]),
    default="simulated",
    show_default=True,
    help="linux: on Linux hosts too, beside the simulated ones.",
)
@jobs_option
@patience_option
def reproduce(
    names: tuple[str, ...],
    quick: bool,
    as_json: bool,
    out: Path,
    hosts: str,
    jobs: int | None,
    patience: float,
) -> None:
    """Reproduce published figures (all, or those named as `firstlight list` shows them) and say how near they
    come."""
    from firstlight.claims import claim as claims
    from firstlight.claims import reproduce as reproductions
    from firstlight.cli.progress import Tracker
    from firstlight.pages import report
    from firstlight.pages.tables import print_verdict
    from firstlight.runs import pool
    from firstlight.runs import sweep as sweeps

    started = time.monotonic()
    mode: claims.Mode = "quick" if quick else "full"
    chosen = claims.select(claims.find(), names)
    points = reproductions.plan(chosen, mode, claims.HOSTS if hosts == "linux" else ("simulated",))
    todo = pool.pending(list(points.values()), out / sweeps.STORE)
    click.echo(
        f"{len(chosen)} reproductions, {len(points)} runs, {len(points) - len(todo)} finished before",
        err=True,
    )
    with Tracker.of_points(f"reproducing ({mode})", todo) as tracker:
        done = reproductions.run(
            chosen, mode, points, out, jobs=jobs, listener=tracker.on_point, patience=patience
        )
    page = report.write_reproduction(done)
    if as_json:
        click.echo(reproductions.as_json(done), nl=False)
    else:
        print_verdict(console(wide=True), done.rows(), done.agreements())
    click.echo(f"\nreport: {page} ({time.monotonic() - started:.0f} s)", err=as_json)


@app.command("list")
def list_() -> None:
    """List the reproductions."""
    from rich.table import Table

    from firstlight.claims import claim as claims

    table = Table(box=None, pad_edge=False)
    for column in ("name", "figure", "section", "runs quick/full", "on Linux", "what"):
        table.add_column(column, no_wrap=column != "what")
    for claim in claims.find():
        counts = [
            "/".join(str(len(claim.runs(mode, [h]))) for mode in get_args(claims.Mode)) for h in claims.HOSTS
        ]
        table.add_row(claim.name, claim.figure, claim.section, *counts, claim.title)
    console(wide=True).print(table)


@app.command()
@click.argument("directory", type=File)
def report(directory: Path) -> None:
    """Write the HTML report of DIRECTORY: a result, a sweep, a comparison or a reproduction."""
    from firstlight.pages import report as reports

    click.echo(f"report: {reports.write(directory)}")


@app.command()
@click.argument("file", type=File)
@set_option
@hosts_option
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def inspect(file: Path, settings: tuple[str, ...], hosts: str | None, as_json: bool) -> None:
    """Show what FILE would build: hosts, rates, week, bandwidth-delay products, flows."""
    from firstlight.pages.tables import print_tree
    from firstlight.runs import run as api

    built = api.inspect(file, parse_settings(settings, hosts))
    if as_json:
        click.echo(json.dumps(built, indent=2))
    else:
        print_tree(console(), {k: v for k, v in built.items() if k != "spec"})


app.add_command(schedule)
app.add_command(goal)
app.add_command(kernel)
app.add_command(doctor)


def parse_settings(settings: tuple[str, ...], hosts: str | None = None) -> dict[str, Any]:
    """``("voq.large=50",)`` -> ``{"voq.large": "50"}``; the core reads each text by its key's type."""
    overrides: dict[str, Any] = {} if hosts is None else {"hosts.kind": hosts}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not key.strip():
            raise SpecError(f"--set {setting}: KEY=VALUE is needed, such as --set voq.large=50")
        if key.strip() in overrides:
            raise SpecError(f"--set {key.strip()}: given twice")
        overrides[key.strip()] = value.strip()
    return overrides


def console(*, wide: bool = False) -> Console:
    """Standard output; tables keep their width when it is not a terminal."""
    out = Console(highlight=False)
    if not out.is_terminal and wide:
        out.width = 160
    return out


def guarded(command: Callable[[], object]) -> int:
    """Run ``command``; errors become one line on standard error and an exit code, never a traceback."""
    try:
        command()
    except click.exceptions.Exit as e:
        return e.exit_code
    except click.ClickException as e:
        e.show()
        return e.exit_code
    except RunError as e:
        click.echo(f"error: {e}", err=True)
        return 1
    except FirstlightError as e:
        click.echo(f"error: {e}", err=True)
        return 2
    except (KeyboardInterrupt, click.Abort):
        click.echo("interrupted; what was finished is kept", err=True)
        return 130
    except BrokenPipeError:
        sys.stderr.close()
        return 141
    return 0


def main() -> None:
    """Entry point of the ``firstlight`` command."""
    sys.exit(guarded(lambda: app(standalone_mode=False)))
