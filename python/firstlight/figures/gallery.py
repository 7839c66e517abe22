"""The figures of a claim, by their kind in ``claim.toml``.

``lines``: ``metrics`` against an axis. ``columns``, ``dots``: the first of ``metrics`` at each point, as
columns or on rows. ``bars``: ``metrics``, a panel each, by curve, at the first point. ``heat_map``: the first
of ``metrics`` by curve and first axis, a panel for each value of the second. ``cdf``: distribution of a
table's ``column``, a panel for each point. ``ratios``: the first of ``metrics``, by the ratios that have
``by``, beside the paper's. ``throughput``: flows over time, a panel for each curve. ``sequence``: what flows
have delivered over time, a line for each curve. ``overload``: all flows together and the first watched queue
over time. ``fct_groups``: completion times by flow size. ``weeks``, ``day``: sequence numbers and VOQ of a
hybrid fabric. ``ladder``: measured delay and queue over time. ``chain_deviation``, ``chain_gaps``,
``chain_rtts``: the measurement chain's.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from firstlight.claims.form import Plot, PlotKind
from firstlight.claims.outcome import Measured, Outcome
from firstlight.figures import (
    bars,
    cdf,
    chain,
    columns,
    dots,
    fct,
    flows,
    heat_map,
    ladder,
    lines,
    overload,
    ratios,
    sequence,
)
from firstlight.figures.style import Figure

PLATFORMS: dict[PlotKind, Callable[[Sequence[Measured], Plot], Figure]] = {
    "columns": columns.columns,
    "day": sequence.day,
    "dots": dots.dots,
    "lines": lines.lines,
    "weeks": sequence.weeks,
}
"""Kinds that show several platforms in one figure."""
SINGLE: dict[PlotKind, Callable[[Measured, Plot], Figure]] = {
    "bars": bars.bars,
    "cdf": cdf.cdf,
    "chain_deviation": chain.deviations,
    "chain_gaps": chain.gaps,
    "chain_rtts": chain.rtts,
    "fct_groups": fct.by_size,
    "heat_map": heat_map.heat_map,
    "ladder": ladder.ladder,
    "overload": overload.overload,
    "ratios": ratios.ratios,
    "sequence": flows.sequences,
    "throughput": flows.throughputs,
}


def figures(outcome: Outcome) -> list[Figure]:
    """The figures that a claim asks for."""
    return [
        PLATFORMS[plot.kind](views, plot) if plot.kind in PLATFORMS else SINGLE[plot.kind](views[0], plot)
        for asked in outcome.claim.plots
        for views, plot in _shown(outcome, asked)
    ]


def _shown(outcome: Outcome, plot: Plot) -> Iterator[tuple[list[Measured], Plot]]:
    """All platforms of a claim at several time scales stand in one figure. Of other claims, and of a day,
    there is one figure for each kind of hosts."""
    by_hosts = {h: [v for v in outcome.views if v.platform.hosts == h] for h in outcome.hosts}
    if outcome.claim.dilated and plot.kind != "day":
        # Linux hosts first, so that they stand beside the paper, and simulated ones are drawn over them.
        yield [view for pair in zip(*reversed(by_hosts.values()), strict=True) for view in pair], plot
        return
    for hosts, views in by_hosts.items():
        if hosts == "linux":
            plot = replace(plot, name=f"{plot.name}-linux", caption=f"Linux hosts. {plot.caption}")
        yield views, plot
