"""The command ``firstlight goal``."""

from pathlib import Path

import click

from firstlight.core import named
from firstlight.errors import PlanError
from firstlight.goal import CLASSES, NAMES, generate
from firstlight.runs.staging import real, replace_text, unwritable

SUFFIX = ".goal"
"""The ending of schedules' names: such a file may be written anew."""


@click.group()
def goal() -> None:
    """Schedules of message-passing applications, as a [[workload]] of kind "goal" replays them."""


@goal.command("generate")
@click.argument("name", type=click.Choice(NAMES), metavar="NAME")
@click.option("--ranks", type=click.IntRange(min=1), required=True, help="How many ranks.")
@click.option(
    "--class", "problem", type=click.Choice(CLASSES), help="bt, cg, ft, is, mg: the problem (default: S)."
)
@click.option("--size", type=click.IntRange(min=1), help="The others: bytes of a message (default: 65536).")
@click.option("--iterations", type=click.IntRange(min=1), default=1, show_default=True, help="How many.")
@click.option(
    "--compute",
    "compute_ns",
    type=click.IntRange(min=0),
    default=0,
    metavar="NS",
    help="Nanoseconds that ranks compute between exchanges (default: none).",
)
@click.option("--out", type=click.Path(path_type=Path), help="The file (default: standard output).")
def write(
    name: str,
    ranks: int,
    problem: str | None,
    size: int | None,
    iterations: int,
    compute_ns: int,
    out: Path | None,
) -> None:
    """Write the communication of NAME: bt, cg, ft, is, mg (NAS parallel benchmarks), halo, all-to-all,
    all-reduce (a ring) or wavefront."""
    text = generate(name, ranks, problem=problem, size=size, iterations=iterations, compute_ns=compute_ns)
    if out is None:
        click.echo(text, nl=False)
        return
    place = real(out)
    if place.exists() and place.suffix != SUFFIX:
        raise PlanError(f"--out {named(out)}: exists and may be no schedule; name a file such as out{SUFFIX}")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise unwritable(out, e) from None
    replace_text(place, text)
    click.echo(f"stored in {out}", err=True)
