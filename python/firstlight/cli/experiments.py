"""The commands ``firstlight run | sweep | compare | inspect | schema``."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click

from firstlight import core
from firstlight.cli.console import (
    console,
    print_columns,
    print_comparison,
    print_cost,
    print_means,
    print_summary,
    print_tree,
)
from firstlight.cli.options import (
    File,
    hosts_option,
    jobs_option,
    json_option,
    machine_options,
    machines_joined,
    parse_settings,
    part_of,
    patience_option,
    seeds_option,
    set_option,
    shard_options,
    timeline_of,
    trace_options,
)
from firstlight.cli.progress import Forecast, Tracker
from firstlight.errors import PlanError
from firstlight.linux import installed
from firstlight.runs import pool, shards
from firstlight.runs import run as runs
from firstlight.runs import sweep as sweeps
from firstlight.runs.cost import cost
from firstlight.runs.seeds import means as means_of


@click.command()
@click.argument("file", type=File)
@set_option
@hosts_option
@click.option("--out", type=File, help="Directory of the result (default: results/runs/<name>-<hash>).")
@click.option("--capture", is_flag=True, help="Store the packets too, as pcapng.")
@trace_options
@seeds_option
@jobs_option
@patience_option
@machine_options
def run(
    file: Path,
    settings: tuple[str, ...],
    hosts: str | None,
    out: Path | None,
    capture: bool,
    seeds: int | None,
    jobs: int | None,
    patience: float,
    trace: Path | None,
    trace_flows: str | None,
    trace_span: str | None,
    machines: tuple[str, ...],
    listen: str | None,
    token: Path | None,
    join_wait: float,
) -> None:
    """Run the experiment in FILE and print its summary."""
    timeline = timeline_of(trace, trace_flows, trace_span)
    if seeds:
        if capture or timeline:
            option = "--capture" if capture else "--trace"
            raise PlanError(f"{option} is for one run: take it out, or --seeds")
        if machines:
            raise PlanError("--machine is for one run: take it out, or --seeds")
        return run_seeds(
            file, parse_settings(settings, hosts), out, pool.Means(jobs, patience=patience), seeds
        )
    experiment = core.Spec.read(file, parse_settings(settings, hosts)).check()
    name = experiment.name
    target = out or Path("results") / "runs" / f"{name}-{runs.key(experiment)[:8]}"
    dilated = installed.is_dilated(experiment.resolved)
    with (
        machines_joined(machines, listen, token, join_wait, dilated=dilated),
        Tracker(f"running {name}") as tracker,
    ):
        watched = Forecast(tracker).on_part
        result = runs.run_into(
            target, experiment, capture, tracker.on_fraction, patience, timeline, watched=watched
        )
    print_summary(console(), result)
    click.echo(f"stored in {target}")
    if timeline:
        click.echo(f"timeline: {timeline.path} (open it at https://ui.perfetto.dev)")
    if result.invalid:
        raise click.ClickException(f"this run is invalid: {'; '.join(result.invalid)}")


def run_seeds(file: Path, overrides: dict[str, Any], out: Path | None, means: pool.Means, seeds: int) -> None:
    """Run FILE with several seeds, as a sweep over them, and print means with intervals."""
    plan = sweeps.plan(file, overrides, {}, out=out, seeds=seeds)
    with Tracker.of_points("running", plan.points, plan.store) as tracker:
        done = sweeps.run_plan(plan, replace(means, listener=tracker.on_point))
    frame = means_of(done.results)
    title = f"{done.name}: means of {seeds} seeds, with half of their 95 % intervals"
    print_means(console(), title, frame)
    click.echo(f"stored in {plan.path} (table: {plan.path / sweeps.TABLE})")


@click.command()
@click.argument("file", type=File)
@set_option
@hosts_option
@click.option("--out", type=File, help="Directory of the points and the table (default: results/<name>).")
@seeds_option
@jobs_option
@shard_options
@patience_option
def sweep(
    file: Path,
    settings: tuple[str, ...],
    hosts: str | None,
    out: Path | None,
    seeds: int | None,
    jobs: int | None,
    shard: str | None,
    status: bool,
    collect: bool,
    patience: float,
) -> None:
    """Run FILE at every point of its [sweep] table; finished points are not run again."""
    part = part_of(shard, status, collect)
    if not status and not collect:
        pool.prepare()
    plan = sweeps.plan(file, parse_settings(settings, hosts), out=out, seeds=seeds)
    if status:
        click.echo(shards.status(plan.points, plan.store))
        return
    if collect:
        shards.collected(plan.points, plan.store)
    points = part.of(plan.points) if part else plan.points
    with Tracker.of_points("sweeping", points, plan.store) as tracker:
        means = pool.Means(jobs, listener=tracker.on_point, patience=patience)
        if part:
            sweeps.run_shard(plan, part, means)
            click.echo(f"shard {shard}: {len(points)} of {len(plan.points)} points are in {plan.store}")
            return
        done = sweeps.run_plan(plan, means)
    rows: Sequence[Mapping[Any, Any]] = done.means.to_dict("records") if seeds else done.rows
    shown = [c for metric in sweeps.SHOWN for c in (metric, f"{metric} +-")]
    print_columns(rows, [c for c in (*done.axes, *shown) if any(c in row for row in rows)])
    click.echo(f"stored in {plan.path} (table: {plan.path / sweeps.TABLE})")


@click.command()
@click.argument("file", type=File)
@set_option
@click.option(
    "--out", type=File, help="Directory of both results and the page (default: results/compare/<name>)."
)
@seeds_option
@jobs_option
@patience_option
def compare(
    file: Path,
    settings: tuple[str, ...],
    out: Path | None,
    seeds: int | None,
    jobs: int | None,
    patience: float,
) -> None:
    """Run FILE on simulated and on Linux hosts and show both with their differences."""
    from firstlight.pages import report
    from firstlight.runs import compare as comparisons

    plan = comparisons.plan(file, parse_settings(settings), out=out, seeds=seeds)
    with Tracker.of_points("comparing", plan.points, plan.path / comparisons.STORE) as tracker:
        means = pool.Means(jobs, listener=tracker.on_point, patience=patience)
        done = comparisons.run_plan(plan, means)
    print_comparison(console(), done)
    click.echo(f"page: {report.write_comparison(done)}")


@click.command()
@click.argument("a", type=File)
@click.argument("b", type=File)
@json_option
def diff(a: Path, b: Path, as_json: bool) -> None:
    """Say what differs between the results or sweeps A and B: settings, digests, metrics with intervals."""
    from firstlight.runs.difference import difference

    found = difference(a, b)
    frame = found.frame
    if as_json:
        settings = [{"key": key, "A": one, "B": other} for key, one, other in found.settings]
        rows = json.loads(frame.to_json(orient="records"))
        done = {"pairs": len(found.pairs), "same_digests": found.same_digests, "alone": found.alone}
        click.echo(json.dumps({**done, "settings": settings, "metrics": rows}, indent=1))
        return
    same = f"{found.same_digests} of {len(found.pairs)} digests are the same"
    click.echo(f"{same}; {len(found.alone)} points are on one side only")
    for key, one, other in found.settings:
        click.echo(f"{key}: {one} -> {other}")
    if len(frame):
        click.echo(frame.to_string(index=False, float_format=lambda v: f"{v:.4g}", na_rep="-"))


@click.command()
def schema() -> None:
    """Print the JSON Schema of experiments, for editors that complete and check them."""
    click.echo(core.schema())


@click.command()
@click.argument("file", type=File)
@set_option
@hosts_option
@click.option(
    "--cost",
    "with_cost",
    is_flag=True,
    help="Run the first two seconds, and estimate what the whole run takes.",
)
@json_option
def inspect(file: Path, settings: tuple[str, ...], hosts: str | None, with_cost: bool, as_json: bool) -> None:
    """Show what FILE would build: hosts, rates, week, bandwidth-delay products, flows."""
    overrides = parse_settings(settings, hosts)
    if with_cost:
        estimate = cost(file, overrides)
        if as_json:
            click.echo(json.dumps(asdict(estimate), indent=2))
        else:
            print_cost(console(), estimate)
        return
    built = runs.inspect(file, overrides)
    if as_json:
        click.echo(json.dumps(built, indent=2))
    else:
        print_tree(console(), {k: v for k, v in built.items() if k != "spec"})
