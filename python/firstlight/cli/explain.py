"""The command ``firstlight explain``: why flows took as long as they did."""

import math
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from firstlight.cli.console import console
from firstlight.cli.options import File
from firstlight.errors import PlanError
from firstlight.runs import result as results
from firstlight.runs.account import Account, AccountPart, Event, chosen, duration, picoseconds
from firstlight.runs.job_account import job_account, message_account
from firstlight.runs.result import Result
from firstlight.runs.without import FORMS, blamed, check, rerun, worth

BAR = 40
"""Characters of a bar for the whole time."""


@click.command()
@click.argument("directory", metavar="RESULT", type=File)
@click.option("--flow", type=click.IntRange(min=0), help="Number of the flow, as in table flows.")
@click.option("--job", metavar="J", help="A job, as in table jobs: its number, or WORKLOAD:NUMBER.")
@click.option("--message", type=click.IntRange(min=0), help="Number of a message, as in table job_paths.")
@click.option(
    "--slowest",
    type=click.IntRange(min=1),
    help="Explain so many of the slowest flows, without this option one.",
)
@click.option(
    "--events",
    type=click.IntRange(min=0),
    default=20,
    show_default=True,
    help="Show so many of a flow's longest events.",
)
@click.option(
    "--without",
    metavar="CAUSE",
    help=f"Run the experiment again without a cause, and say what it was worth: {FORMS}.",
)
def explain(
    directory: Path,
    flow: int | None,
    job: str | None,
    message: int | None,
    slowest: int | None,
    events: int,
    without: str | None,
) -> None:
    """Say why flows, a job or a message of RESULT took so long: in a sentence, by cause, and event by event.

    The experiment must have been run with measure.account = true.
    """
    out = console(wide=True)
    result = results.load(directory)
    if sum(one is not None for one in (flow, job, message, slowest)) > 1:
        raise PlanError("--flow, --slowest, --job and --message are four things to explain: give one of them")
    if job is not None or message is not None:
        if without is not None:
            raise PlanError("--without is for flows: take --job and --message out")
        return _explain_job(out, result, job, message)
    found = chosen(result, flow, slowest or 1)
    if without is not None:
        return _compare(out, result, found, check(without))
    for account in found:
        _print(out, result, account, events)


def _explain_job(out: Console, result: Result, job: str | None, message: int | None) -> None:
    """A job and the steps of its critical path, or else a message."""
    if job is None:
        account = message_account(result, message or 0)
        out.print(account.sentence(), style="bold", soft_wrap=True)
        out.print(f"({account.label})\n", style="dim")
    else:
        found = job_account(result, job)
        account = found.total
        out.print(found.sentence() + "\n", style="bold", soft_wrap=True)
    _bars(out, "cause", account.parts("cause"))
    _bars(out, "waiting for", account.parts("waiting_for"))
    if job is None:
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("critical path", no_wrap=True)
    table.add_column("time", justify="right", no_wrap=True)
    table.add_column("most of it")
    for step in found.steps:
        most = ", ".join(f"{part.name} {duration(part.time_ps)}" for part in step.account.parts()[:3])
        table.add_row(step.name, duration(step.time_ps), most)
    out.print(table)
    out.print()


def _compare(out: Console, result: Result, found: list[Account], cause: str) -> None:
    """The gain of removing a cause, for these flows and for all."""
    again = rerun(result, cause)
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("completion time", no_wrap=True)
    for column in ("with", f"without {cause}", "difference", "in the account"):
        table.add_column(column, justify="right", no_wrap=True)
    blamed_times = {f"flow {account.flow}": duration(blamed(account, cause)) for account in found}
    for row in worth(result, again, [account.flow for account in found]):
        after, gain = ("-", "-")
        if not math.isnan(row.after):
            after, gain = duration(picoseconds(row.after)), duration(picoseconds(row.after - row.before))
        table.add_row(
            row.what, duration(picoseconds(row.before)), after, gain, blamed_times.get(row.what, "")
        )
    out.print(table)


def _print(out: Console, result: Result, account: Account, events: int) -> None:
    out.print(account.sentence(), style="bold", soft_wrap=True)
    out.print(f"({account.label})\n", style="dim")
    _bars(out, "cause", account.parts("cause"))
    _bars(out, "waiting for", account.parts("waiting_for"))
    _kernel_counts(out, result, account)
    _chain(out, account, events)


def _kernel_counts(out: Console, result: Result, account: Account) -> None:
    """The counters of the sender's kernel, if it has one."""
    if "account_tcp_info" not in result.tables:
        return
    for _, busy, window, buffer in result.table("account_tcp_info").query("flow == @account.flow").to_numpy():
        busy, window, buffer = (duration(picoseconds(time)) for time in (busy, window, buffer))
        out.print(
            f"The sender's kernel counts, in ticks: busy {busy}, "
            f"of this limited by the receive window {window}, by the send buffer {buffer}.\n",
            style="dim",
            soft_wrap=True,
        )


def _bars(out: Console, title: str, parts: list[AccountPart]) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(title, no_wrap=True)
    table.add_column("time", justify="right", no_wrap=True)
    table.add_column("%", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for part in parts:
        bar = "#" * max(1, round(part.share * BAR))
        table.add_row(part.name, duration(part.time_ps), f"{part.share:.1%}".rstrip("%"), bar)
    out.print(table)
    out.print()


def _chain(out: Console, account: Account, most: int) -> None:
    if account.events.empty:
        out.print(
            f"Its events were not stored: run again with --set 'measure.account=[\"flow {account.flow}\"]', "
            "or with a larger measure.account_events.\n",
            style="dim",
            soft_wrap=True,
        )
        return
    chain = account.chain()
    longest = set(sorted(range(len(chain)), key=lambda i: -chain[i].time_ps)[:most])
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("at", "for"):
        table.add_column(column, justify="right", no_wrap=True)
    for column in ("cause", "where", "who"):
        table.add_column(column, no_wrap=True)
    table.add_column("waiting for")
    table.add_column("detail", overflow="fold")
    skipped: list[Event] = []
    for index, event in enumerate(chain):
        if index not in longest:
            skipped.append(event)
            continue
        _add_shorter(table, skipped)
        skipped = []
        table.add_row(
            duration(event.at_ps),
            duration(event.time_ps),
            event.cause,
            event.where,
            event.who,
            event.waiting_for,
            event.detail,
        )
    _add_shorter(table, skipped)
    out.print(table)
    out.print()


def _add_shorter(table: Table, events: list[Event]) -> None:
    """A row for events that are not shown."""
    if events:
        time = duration(sum(event.time_ps for event in events))
        table.add_row("", time, f"({len(events)} shorter)", "", "", "", "", style="dim")
