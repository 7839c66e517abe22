"""The command ``firstlight schedule``."""

from pathlib import Path

import click

from firstlight import _core
from firstlight.cli.console import console
from firstlight.errors import SpecError

ALL = "all"


@click.command()
@click.argument("file", type=click.Path(path_type=Path), metavar="DEMAND.csv")
@click.option(
    "--scheduler",
    "names",
    multiple=True,
    default=(ALL,),
    show_default=True,
    metavar="NAME",
    help=f"One of {', '.join(_core.schedulers())}, or all; may be given several times.",
)
@click.option("--week", default="2ms", show_default=True, help="Length of the week, nights and days.")
@click.option("--night", default="20us", show_default=True, help="Reconfiguration before each day.")
@click.option("--day", "least_day", default="50us", show_default=True, help="The shortest day.")
@click.option("--circuit", "circuit_rate", default="80Gbps", show_default=True, help="Rate of a circuit.")
@click.option(
    "--packet",
    "packet_rate",
    default="10Gbps",
    show_default=True,
    help="Rate of each rack's link to the packet network.",
)
@click.option("--unit", default="bytes", show_default=True, help="Unit of the file's plain numbers.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Directory of schedule.json and the picture (default: results/schedules/<file's name>).",
)
def schedule(file: Path, names: tuple[str, ...], unit: str, out: Path | None, **frame: str) -> None:
    """Compute schedules of the circuit switch for the demand in DEMAND.csv, and show what they serve. The
    file has a row of numbers for each sending rack."""
    from firstlight.circuits import tables
    from firstlight.circuits.demand import read_demand
    from firstlight.pages.study import EARLIER, Study
    from firstlight.runs.staging import Staging, check_target

    target = out or Path("results") / "schedules" / file.stem
    check_target(target, EARLIER)
    demand = read_demand(file, unit)
    try:
        study = Study.of(demand, _chosen(names), source=str(file), frame=frame, lenient=ALL in names)
    except SpecError as e:
        raise SpecError(_naming_options(str(e), f"{file}: ")) from None
    with Staging(target) as staging:
        staging.commit(study)
    out_console = console()
    if len(study.schedules) == 1:
        tables.print_calendar(out_console, study.schedules[0])
    else:
        tables.print_comparison(out_console, study.schedules)
    tables.print_refused(out_console, study.refused)
    tables.print_run_times(out_console, study.schedules)
    click.echo(f"stored in {target}")


def _naming_options(text: str, place: str) -> str:
    """``text`` with the option for each parameter of :func:`firstlight.schedule`, as --day for least_day."""
    for option in click.get_current_context().command.params:
        text = text.replace(f"{place}{option.name}: ", f"{option.opts[0]}: ")
    return text


def _chosen(names: tuple[str, ...]) -> list[str]:
    known = _core.schedulers()
    for name in names:
        if name not in (*known, ALL):
            raise SpecError(
                f"--scheduler {name}: no such scheduler; write one of {', '.join(known)}, or {ALL}"
            )
    return known if ALL in names else list(dict.fromkeys(names))
