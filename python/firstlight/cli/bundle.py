"""The commands ``firstlight bundle | rerun``."""

import shlex
from pathlib import Path

import click

from firstlight import core
from firstlight.claims import reproduce
from firstlight.cli.options import File, jobs_option, patience_option
from firstlight.cli.progress import Tracker
from firstlight.runs import bundle as bundles
from firstlight.runs import compare, pool, sweep
from firstlight.runs.grid import label
from firstlight.runs.result import Result, load
from firstlight.runs.run import directory_of
from firstlight.runs.staging import claim
from firstlight.runs.sweep import STORE


@click.command()
@click.argument("directory", type=File)
@click.option("--out", type=File, help="The file to write (default: <name of DIRECTORY>.bundle.zip).")
def bundle(directory: Path, out: Path | None) -> None:
    """Pack DIRECTORY (a result, a sweep, a comparison or a reproduction) into one file, with its experiments,
    their inputs and the versions. `firstlight rerun` runs it again."""
    results = results_in(directory)
    target = out or Path(f"{directory.resolve().name}.bundle.zip")
    made = bundles.pack(directory, results, target)
    for line in made.left_out:
        click.echo(f"warning: not in the bundle: the files that this program reads: {line}", err=True)
    size = made.file.stat().st_size / 1e6
    again = shlex.join(["firstlight", "rerun", str(made.file)])
    click.echo(f"{made.file}: {made.points} points, {size:.1f} MB; run again: {again}")


@click.command()
@click.argument("file", type=File)
@click.option("--out", type=File, help="Directory of the new results (default: results/rerun/<name>).")
@jobs_option
@patience_option
def rerun(file: Path, out: Path | None, jobs: int | None, patience: float) -> None:
    """Run every point of the bundle FILE again and say whether the digests agree."""
    target = directory_of(out, "rerun", file.name.removesuffix(".zip").removesuffix(".bundle"))
    bundles.check(file)
    claim(target)
    known = bundles.unpack(file, target / "bundle")
    store = target / STORE
    with Tracker.of_points("running again", known.points, store) as tracker:
        means = pool.Means(jobs, listener=tracker.on_point, patience=patience)
        ours = pool.run_all(known.points, store, means)
    different = known.different(ours)
    for point, theirs, own in different:
        click.echo(
            f"{point}: digest {own.digest} ({own.path}), in the bundle {theirs.digest} ({theirs.path})"
        )
    click.echo(f"{len(ours) - len(different)} of {len(ours)} digests agree")
    if different:
        raise click.ClickException(
            f"digests differ; the bundle is of version {known.version}, this is {core.version()}"
        )


def results_in(directory: Path) -> dict[str, Result]:
    """The stored results of a result, a sweep, a comparison or a reproduction, by label."""
    if (directory / reproduce.INDEX).is_file():
        done = reproduce.load_reproduction(directory)
        return {o.claim.point(run, done.mode).label: r for o in done.outcomes for run, r in o.results.items()}
    if (directory / sweep.INDEX).is_file():
        swept = sweep.load_sweep(directory)
        return {label(s): r for s, r in zip(swept.settings, swept.results, strict=True)}
    if (directory / compare.INDEX).is_file():
        both = compare.load_comparison(directory)
        return {"simulated hosts": both.simulated, "linux hosts": both.linux}
    return {label({}): load(directory)}
