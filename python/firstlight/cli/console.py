"""Output of commands: a run's summary, a comparison, a reproduction's rows, what an experiment builds."""

from collections.abc import Mapping, Sequence
from itertools import chain, groupby
from typing import TYPE_CHECKING, Any

import click
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from firstlight.numbers import number
from firstlight.runs.cost import Cost
from firstlight.runs.result import Result

if TYPE_CHECKING:  # these import pandas, which most commands do without
    import pandas as pd

    from firstlight.claims.reproduce import Reproduction
    from firstlight.pages.lines import Line
    from firstlight.runs.compare import Comparison


def console(*, wide: bool = False) -> Console:
    """Standard output, where text is never markup; with ``wide``, tables keep their width where it is not a
    terminal."""
    out = Console(highlight=False, markup=False, emoji=False)
    if not out.is_terminal and wide:
        out.width = 160
    return out


COLORS = {"holds": "green", "partly": "yellow", "contradicted": "red"}


def print_scoreboard(console: Console, done: "Reproduction") -> None:
    """Print a line for each claim, by paper: its verdict on each kind of hosts."""
    from firstlight.claims.scoreboard import COLUMNS

    table = Table(*COLUMNS, box=box.SIMPLE_HEAD, pad_edge=False)
    for _, scores in groupby(done.scores, key=lambda score: score.claim.source):
        for score in scores:
            verdicts = [Text(str(j), style=COLORS.get(j.verdict, "dim")) for j in score.judgements.values()]
            table.add_row(*score.cells[:2], *verdicts)
        table.add_section()
    console.print(table)


def print_rows(console: Console, done: "Reproduction") -> None:
    """Print the rows of all claims as two tables, and a line for each figure."""
    from firstlight.pages.lines import NUMBER_COLUMNS, SCALE_COLUMNS, SCALE_NOTE, lines_of, number_note

    both = list(zip((o.claim for o in done.outcomes), done.rows, strict=True))
    scaled = [line for claim, rows in both if claim.dilated for line in lines_of(claim, rows)]
    if scaled:
        _print_lines(console, SCALE_COLUMNS, scaled)
        console.print(f"{SCALE_NOTE}\n", style="dim")
    if lines := [line for claim, rows in both if not claim.dilated for line in lines_of(claim, rows)]:
        _print_lines(console, NUMBER_COLUMNS, lines)
        note = number_note(chain.from_iterable(rows for claim, rows in both if not claim.dilated))
        console.print(f"{note}\n", style="dim")
    for agreement in done.agreements:
        console.print(str(agreement))


def _print_lines(console: Console, columns: Sequence[str], lines: "Sequence[Line]") -> None:
    table = Table(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
        title="Paper and ours",
        title_justify="left",
    )
    for i, column in enumerate(columns):
        table.add_column(
            column, justify="left" if i < 3 else "right", overflow="fold", min_width=None if i < 3 else 8
        )
    previous = ""
    for line in lines:
        if previous not in ("", line[0]):
            table.add_section()
        previous = line[0]
        table.add_row(*line)
    console.print(table)


def print_summary(console: Console, result: Result) -> None:
    """Print a run's summary metrics, its digest and its warnings."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=result.name, title_justify="left")
    table.add_column("metric")
    table.add_column("value", justify="right")
    table.add_column("unit")
    columns = result.lists("summary")
    for metric, unit, value in zip(columns["metric"], columns["unit"], columns["value"], strict=True):
        table.add_row(str(metric), f"{value:,.6g}", str(unit))
    console.print(table)
    console.print(f"digest {result.digest}", highlight=False)
    for warning in result.warnings:
        console.print(f"warning: {warning}", style="yellow", highlight=False)


def print_columns(rows: Sequence[Mapping[Any, Any]], names: Sequence[str]) -> None:
    """Print some columns of rows, whole, however wide the terminal is."""

    def text(value: object) -> str:
        if value is None or value != value:
            return "NaN"
        return f"{value:.4g}" if isinstance(value, float) else str(value)

    cells = [list(names), *([text(row.get(name)) for name in names] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for line in cells:
        click.echo(" ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)))


def print_means(console: Console, title: str, means: "pd.DataFrame") -> None:
    """Print metrics' means over seeds, with half of their 95 % intervals."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=title, title_justify="left")
    table.add_column("metric")
    for column in ("mean", "+-"):
        table.add_column(column, justify="right")
    table.add_column("unit")
    for metric, unit, *values in means.itertuples(index=False):
        table.add_row(str(metric), *(f"{v:,.4g}" if v == v else "-" for v in values), str(unit))
    console.print(table)


def print_comparison(console: Console, done: "Comparison") -> None:
    """Print the divergences, the largest first, then the metrics on both kinds of hosts."""
    apart = Table(box=box.SIMPLE_HEAD, pad_edge=False, title="Divergence", title_justify="left")
    for column in ("of", "value", "unit", "what it is"):
        apart.add_column(column, justify="right" if column == "value" else "left", overflow="fold")
    for d in done.divergence:
        apart.add_row(d.name, number(d.value), d.unit, d.definition)
    console.print(apart)
    if done.parting:
        console.print(f"The first difference: {done.parting}.", highlight=False)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=done.name, title_justify="left")
    table.add_column("metric")
    for column in ("simulated", "Linux", "difference", "+-"):
        table.add_column(column, justify="right")
    table.add_column("unit")
    for metric, unit, *values in done.frame.itertuples(index=False):
        table.add_row(str(metric), *(f"{v:,.6g}" if v == v else "-" for v in values), str(unit))
    console.print(table)


SHOWN = 6


def print_cost(console: Console, cost: Cost) -> None:
    """Print the time and memory that a run takes, and the source of these numbers."""
    known = "measured" if cost.part == 1 else f"estimated from the first {cost.part:.2g} of the run"
    console.print(f"cost of a run on this machine, {known}:", highlight=False, soft_wrap=True)
    console.print(
        f"  time: {cost.seconds:,.2g} s" if cost.seconds < 100 else f"  time: {cost.seconds:,.0f} s"
    )
    console.print(f"  packet-hops: {cost.packet_hops:,}")
    console.print(f"  memory: {cost.memory / 1e6:,.0f} MB")


def cost_line(cost: Cost) -> str:
    """The time and memory that a run takes, in one line."""
    minutes = f"{cost.seconds / 60:,.0f} min" if cost.seconds >= 120 else f"{cost.seconds:.0f} s"
    known = f"estimated from its first {100 * cost.part:.2g} %"
    return f"{minutes}, {cost.packet_hops:,} packet-hops and {cost.memory / 1e6:,.0f} MB of memory ({known})"


def print_tree(console: Console, value: Mapping[str, Any], indent: int = 0) -> None:
    """Print nested values as indented lines; of a long list of rows the first ones and the last."""
    pad = "  " * indent

    def line(text: str, style: str | None = None) -> None:
        console.print(f"{pad}{text}", style=style, highlight=False, soft_wrap=True)

    for key, item in value.items():
        if isinstance(item, dict) and item:
            line(key, "bold")
            print_tree(console, item, indent + 1)
        elif isinstance(item, list) and item and isinstance(item[0], dict):
            line(f"{key} ({len(item)})", "bold")
            rows = ["  " + "  ".join(f"{k} {plain(v)}" for k, v in row.items()) for row in item]
            if len(rows) > SHOWN:
                rows[SHOWN - 1 : -1] = [f"  ... {len(rows) - SHOWN} more ..."]
            for row in rows:
                line(row)
        elif isinstance(item, list):
            line(f"{key}: " + ("; ".join(map(plain, item)) or "none"))
        else:
            line(f"{key}: {plain(item)}")


def plain(value: object) -> str:
    """A value as a person would write it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    return "-" if value is None else str(value)
