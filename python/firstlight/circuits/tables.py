"""Output of ``firstlight schedule``: one scheduler's calendar, or a row for each of several schedulers."""

from collections.abc import Mapping, Sequence

from rich import box
from rich.console import Console
from rich.table import Table

from firstlight.circuits.schedule import Day, Schedule

SHOWN_PAIRS = 12
"""Largest number of pairs of a matching that are printed; the file has all."""
SIZES = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B"))


def print_calendar(console: Console, schedule: Schedule) -> None:
    """Print a row for each day, then a summary of the schedule."""
    table = _table(schedule.scheduler)
    for column in ("day", "begins (us)", "length (us)", "bytes served"):
        table.add_column(column, justify="right")
    table.add_column("matching", overflow="fold")
    for number, day in enumerate(schedule.days, 1):
        served, matching = size(day.served_bytes), shown(schedule, day)
        table.add_row(str(number), f"{day.begins_us:,.6g}", f"{day.length_us:,.6g}", served, matching)
    console.print(table)
    total = int(schedule.demand.sum(dtype=float))
    rows = [
        ("served on circuits", f"{percent(schedule.share_served)} of {size(total)}"),
        (
            "duty cycle",
            f"{percent(schedule.duty_cycle)} of the week; {percent(schedule.rack_duty)} of a rack's time",
        ),
        ("configurations", str(schedule.configurations)),
        ("left to the packet network", _left(schedule)),
        ("run time", f"{span(schedule.run_time_ns)} on this machine"),
    ]
    for name, value in rows:
        console.print(f"{name:<27} {value}", soft_wrap=True)


def _left(schedule: Schedule) -> str:
    left = (
        f"{size(int(schedule.left.sum(dtype=float)))}; the busiest rack's {size(schedule.busiest_left_bytes)}"
    )
    verdict = "fits into" if schedule.packet_fits else "does not fit into"
    week = span(schedule.week_ps / 1e3)
    return f"{left} takes {span(schedule.packet_time_ps / 1e3)}, which {verdict} the week of {week}"


def print_comparison(console: Console, schedules: Sequence[Schedule]) -> None:
    """Print a row for each scheduler; the best ones are marked."""
    table = _table("Schedules")
    table.add_column("\nscheduler", no_wrap=True)
    heads = ("on\ncircuits", "packet\nnetwork", "duty\ncycle", "of a\nrack", "config-\nurations")
    for head in (*heads, "\nrun time"):
        table.add_column(head, justify="right", no_wrap=True)
    top = max(map(_merit, schedules))
    for one in schedules:
        best = _merit(one) == top
        table.add_row(
            f"{one.scheduler} *" if best else one.scheduler,
            percent(one.share_served),
            f"{span(one.packet_time_ps / 1e3)}{'' if one.packet_fits else ' !'}",
            percent(one.duty_cycle),
            percent(one.rack_duty),
            str(one.configurations),
            span(one.run_time_ns),
            style="bold" if best else None,
        )
    console.print(table)
    note = "* most on circuits; among equals the fewest configurations"
    if not all(one.packet_fits for one in schedules):
        note += f". ! longer than the week of {span(schedules[0].week_ps / 1e3)}"
    console.print(note, style="dim", soft_wrap=True)


def _merit(schedule: Schedule) -> tuple[float, int]:
    return float(schedule.served.sum(dtype=float)), -schedule.configurations


def print_refused(console: Console, refused: Mapping[str, str]) -> None:
    """Print the schedulers that have no schedule, and why."""
    for name, reason in refused.items():
        console.print(f"no schedule: {reason if name in reason else f'{name}: {reason}'}", soft_wrap=True)


def print_run_times(console: Console, schedules: Sequence[Schedule]) -> None:
    """Print the key of an experiment that models the scheduler's run time, ready to be pasted."""
    for one in schedules:
        comment = f"  # {one.scheduler}" if len(schedules) > 1 else ""
        console.print(f'control.compute = "{span(one.run_time_ns)}"{comment}', markup=False, soft_wrap=True)


def _table(title: str) -> Table:
    return Table(box=box.SIMPLE_HEAD, pad_edge=False, title=title, title_justify="left")


def shown(schedule: Schedule, day: Day) -> str:
    """A day's matching; of a long one the first pairs."""
    words = schedule.matching(day).split(" ")
    if len(words) <= SHOWN_PAIRS:
        return " ".join(words)
    return f"{' '.join(words[:SHOWN_PAIRS])} and {len(words) - SHOWN_PAIRS} more"


def percent(share: float) -> str:
    """``93.4 %``; a dash where there is no share."""
    return "-" if share != share else f"{100 * share:.1f} %"


def size(amount: float) -> str:
    """Bytes in up to four digits: ``20.4 MB``."""
    factor, unit = next((found for found in SIZES if amount >= found[0]), SIZES[-1])
    return f"{amount / factor:.4g} {unit}"


def span(ns: float) -> str:
    """A time in three digits as experiments take it: ``35.4us``."""
    for factor, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "us")):
        if ns >= factor:
            return f"{_digits(ns / factor)}{unit}"
    return f"{_digits(ns)}ns"


def _digits(value: float) -> str:
    return f"{float(f'{value:.3g}'):.12g}"
