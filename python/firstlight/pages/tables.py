"""What the commands print: the verdict of a reproduction, a run's summary, what a spec builds."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from firstlight.claims.agreement import Agreement
from firstlight.claims.claim import HOSTS, Hosts
from firstlight.claims.measured import Number
from firstlight.claims.verdict import MEDIANS, Row, minus
from firstlight.runs.compare import Comparison
from firstlight.runs.result import Result

Line = tuple[str, ...]
METRIC_NAMES = {
    "circuit_utilization_pct": "circuit utilization",
    "p99_all_us": "p99, all",
    "p99_circuit_us": "p99, circuit",
    "p99_packet_us": "p99, packet",
    "p50_all_us": "median, all",
    "p50_circuit_us": "median, circuit",
    "p50_packet_us": "median, packet",
    "fct_s": "completion time",
    "utilization_gain": "utilization gained",
    "night_us": "night",
    "day_us": "day",
    "packet_rate_gbps": "rate of the packet network",
    "circuit_rate_gbps": "rate of the circuit",
    "voq_in_day_packets": "VOQ late in the day",
}
COLUMNS = (
    "figure",
    "point",
    "metric",
    "paper",
    "Linux x20",
    "diff",
    "simulated x20",
    "diff",
    "Linux x1",
    "simulated x1",
    "diff",
)

NUMBER_COLUMNS = ("figure", "point", "metric", "paper", "ours", "95 %", "diff", "diff %")
"""Of measured claims."""
SEEDS = "95 %: half of the interval of the mean over seeds"
ALONE = "95 %, with *: half of the interval that the flows of a single run give"


def number(value: float | None) -> str:
    """Three to four digits; a dash where there is none."""
    if value is None:
        return "-"
    return f"{value:.2f}" if abs(value) < 10 else f"{value:.1f}"


def signed(value: float | None) -> str:
    """A difference, always with its sign."""
    return "-" if value is None else f"{value:+.2f}" if abs(value) < 10 else f"{value:+.1f}"


def verdict_lines(rows: Iterable[Row], *, medians: bool = False) -> list[Line]:
    """One line per figure, point and metric: the paper, Linux and simulated hosts at scale 20; Linux and
    simulated hosts in exact time.

    The first two differences are against the paper, the third against Linux; where the paper is in exact time
    itself (Fig. 3), against the paper.
    """
    merged: dict[tuple[str, str, str], dict[tuple[Hosts, int], Row]] = {}
    for row in rows:
        if not isinstance(row, Number) and (medians or row.metric not in MEDIANS):
            key = (row.figure, row.point, row.metric)
            merged.setdefault(key, {})[row.hosts, row.time_scale] = row
    figures = list(dict.fromkeys(key[0] for key in merged))
    return [_line(key, merged[key]) for key in sorted(merged, key=lambda key: figures.index(key[0]))]


def number_lines(rows: Iterable[Row]) -> list[Line]:
    """One line for each row of measured claims, figure by figure."""
    numbers = [r for r in rows if isinstance(r, Number)]
    figures = list(dict.fromkeys(r.figure for r in numbers))
    return [
        (
            row.figure,
            row.point,
            f"{row.label} ({row.unit})" if row.unit else row.label,
            number(row.paper),
            number(row.ours),
            "-" if row.interval is None else f"±{number(row.interval)}{'*' if row.alone else ''}",
            signed(row.difference),
            "-" if row.percent is None else f"{row.percent:+.0f} %",
        )
        for row in sorted(numbers, key=lambda row: figures.index(row.figure))
    ]


def number_note(rows: Iterable[Row]) -> str:
    """What the columns of :func:`number_lines` are, as far as these rows have them."""
    known = {row.alone for row in rows if isinstance(row, Number) and row.interval is not None}
    told = [text for alone, text in ((False, SEEDS), (True, ALONE)) if alone in known]
    return ". ".join([*told, "diff %: of the paper's number."])


def _line(key: tuple[str, str, str], found: Mapping[tuple[Hosts, int], Row]) -> Line:
    row = next(iter(found.values()))
    paper = next((r.paper for r in found.values() if r.paper is not None), None)
    slow, exact = (found.get(("simulated", scale)) for scale in (20, 1))
    real = {scale: _real(found, scale) for scale in (20, 1)}
    figure, point, metric = key
    unit = "" if row.unit in ("packets", "points", "x") and metric not in METRIC_NAMES else f" ({row.unit})"
    against = None
    if exact is not None:
        published = slow is None and exact.linux is None
        against = exact.difference if published else exact.linux_difference
    return (
        figure,
        point,
        METRIC_NAMES.get(metric, metric) + unit,
        number(paper),
        number(real[20]),
        signed(minus(real[20], paper)),
        number(slow.ours if slow else None),
        signed(slow.difference if slow else None),
        number(real[1]),
        number(exact.ours if exact else None),
        signed(against),
    )


def _real(found: Mapping[tuple[Hosts, int], Row], scale: int) -> float | None:
    """What Linux gave: its hosts of this reproduction, else what is known beside the simulated ones."""
    for hosts in HOSTS[::-1]:
        if (row := found.get((hosts, scale))) is not None:
            return row.ours if hosts == "linux" else row.linux
    return None


def agreement_line(a: Agreement) -> str:
    """One sentence on how near a figure comes."""
    hosts = {"simulated": "simulated", "linux": "Linux"}[a.hosts]
    if a.numbers:
        apart = "none measured" if a.others is None else f"mean absolute difference {a.others:.0f} %"
        return f"{a.figure}, {hosts} hosts, against {a.against}: {a.numbers} numbers, {apart}"
    where = "exact time" if a.time_scale == 1 else f"scale {a.time_scale}"
    aim, tail_aim = (f" (aim {v:g})" if a.aimed else "" for v in (a.aim.utilization, a.aim.tail))
    parts = []
    if a.utilization is not None:
        parts.append(f"utilization {a.utilization:.1f} points{aim}")
    if a.tail is not None:
        parts.append(f"p99 {a.tail:.1f} %{tail_aim}")
    if a.fct is not None:
        parts.append(f"completion time {a.fct:.0f} %")
    verdict = {True: ": aim met", False: ": aim missed", None: ""}[a.met]
    which = f"{a.figure}, {hosts} hosts, {where}, against {a.against}"
    return f"{which}: mean absolute difference {', '.join(parts)}{verdict}"


def print_verdict(console: Console, rows: Sequence[Row], near: Sequence[Agreement]) -> None:
    """The verdict tables, the headline ratios and a line per figure."""
    if lines := verdict_lines(rows):
        _print_lines(console, COLUMNS, lines)
        console.print(
            "x20: the fabric's times stretched 20-fold against the hosts' clocks, as on the paper's testbed; "
            "x1: exact time.\nThe paper's numbers compare with x20 (Fig. 3: with x1). Linux: run now with "
            "--hosts linux, else as measured before.\n",
            style="dim",
        )
    if lines := number_lines(rows):
        _print_lines(console, NUMBER_COLUMNS, lines)
        console.print(f"{number_note(rows)}\n", style="dim")
    for agreement in near:
        color = {True: "green", False: "yellow", None: "default"}[agreement.met]
        console.print(agreement_line(agreement), style=color)


def _print_lines(console: Console, columns: Sequence[str], lines: Sequence[Line]) -> None:
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
    """A run's summary metrics, its digest and its warnings."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=result.name, title_justify="left")
    table.add_column("metric")
    table.add_column("value", justify="right")
    table.add_column("unit")
    frame = result.table("summary")
    for metric, unit, value in zip(frame["metric"], frame["unit"], frame["value"], strict=True):
        table.add_row(str(metric), f"{value:,.6g}", str(unit))
    console.print(table)
    console.print(f"digest {result.digest}", highlight=False)
    for warning in result.warnings:
        console.print(f"warning: {warning}", style="yellow", highlight=False)


def print_comparison(console: Console, done: Comparison) -> None:
    """Metrics on both kinds of hosts, then the divergences with their definitions."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=done.name, title_justify="left")
    table.add_column("metric")
    for column in ("simulated", "Linux", "difference"):
        table.add_column(column, justify="right")
    table.add_column("unit")
    for metric, unit, *values in done.frame.itertuples(index=False):
        table.add_row(str(metric), *(f"{v:,.6g}" if v == v else "-" for v in values), str(unit))
    console.print(table)
    apart = Table(box=box.SIMPLE_HEAD, pad_edge=False, title="Divergence", title_justify="left")
    for column in ("of", "value", "unit", "what it is"):
        apart.add_column(column, justify="right" if column == "value" else "left", overflow="fold")
    for d in done.divergence:
        apart.add_row(d.name, number(d.value), d.unit, d.definition)
    console.print(apart)


SHOWN = 6


def print_tree(console: Console, value: Mapping[str, Any], indent: int = 0) -> None:
    """Nested values as indented lines; long lists of rows by their first rows and the last."""
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
    """A value as a person would write it: no binary fractions, no ``None``."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    return "-" if value is None else str(value)
