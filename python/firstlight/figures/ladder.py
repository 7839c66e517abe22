"""DX's ladder: measured queueing delay beside the queue, step by step (Fig. 9)."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from firstlight import measures_ladder
from firstlight.figures.style import BLUE, SKY, VERMILION, Figure, draw
from firstlight.verdict import Outcome

SQUARES = 4
"""Marks of the switch's queue in a step."""


def ladder(outcome: Outcome, name: str, caption: str) -> Figure:
    """A panel per point: a line per curve, the first in full colour, and squares for the switch's queue as
    the first curve's run has it."""
    ats = outcome.ats()
    colors = (BLUE, SKY)

    def paint(canvas: Canvas) -> None:
        panels: Sequence[Axes] = np.ravel(canvas.subplots(1, len(ats), squeeze=False)).tolist()
        for axes, at in zip(panels, ats, strict=True):
            runs = [(h, c) for h, c in outcome.runs() if (h, c.name, at) in outcome.results]
            for number, ((hosts, curve), color) in reversed(list(enumerate(zip(runs, colors, strict=False)))):
                line = measures_ladder.delays(outcome.result(curve, at, hosts))
                width = 1.6 if number == 0 else 0.8
                label = f"measured, {curve.name}"
                axes.plot(line["time_us"] / 1e3, line["delay_us"], color=color, lw=width, label=label)
            hosts, curve = runs[0]
            steps = measures_ladder.steps(outcome.result(curve, at, hosts))
            place = (np.arange(SQUARES) + 0.5) / SQUARES
            spans = zip(steps["start_us"], steps["end_us"], strict=True)
            x = np.concatenate([start + place * (end - start) for start, end in spans])
            real = measures_ladder.queue(outcome.result(curve, at, hosts))
            nearest = np.searchsorted(real["time_us"], x).clip(max=len(real) - 1)
            axes.plot(
                real["time_us"].to_numpy()[nearest] / 1e3,
                real["delay_us"].to_numpy()[nearest],
                "s",
                color=VERMILION,
                ms=3,
                label="queue at the switch",
            )
            axes.set_title(outcome.claim.label(at))
            axes.set_xlabel("Time (ms)")
            axes.set_xlim(left=0)
            axes.set_ylim(bottom=0)
        panels[0].set_ylabel("Queueing delay (us)")
        handles, labels = panels[0].get_legend_handles_labels()
        canvas.legend(handles[::-1], labels[::-1], ncols=3, loc="outside upper left")

    return draw(name, caption, (7.2, 3.2), paint)
