"""The data of one run for a page: the fabric, its events over time, curves, numbers."""

from collections.abc import Mapping
from itertools import cycle
from typing import Any

import numpy as np
import pandas as pd

from firstlight.claims.measures.units import in_us
from firstlight.core import Experiment, Output
from firstlight.figures.panels import Arrays
from firstlight.figures.style import BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILION
from firstlight.runs.result import Result

COLORS = (BLUE, VERMILION, GREEN, ORANGE, PURPLE, SKY)
FLOWS = 6
"""Curves of single flows or ports: those with the most bytes."""
MOST_CIRCUITS = 4000
MOST_WEEKS = 100


def frame_of(experiment: Experiment, output: Output) -> dict[str, Any]:
    """The frame of one run: all times are in us from the start, queues in packets (VOQs) or bytes."""
    result, arrays = Result(output.manifest, output.tables), Arrays()
    end = float(output.manifest["elapsed_us"])
    seen = experiment.inspect()
    drawn = (_throughput(result, end), _windows(result, end), _queues(result, end))
    panels = [panel for panel in drawn if panel]
    circuits, pair = _circuits(seen, result), _pair(result)
    for panel in panels:
        for curve in panel["curves"]:
            curve["x"], curve["y"] = arrays.place(curve["x"]), arrays.place(curve["y"])
        if panel["x"]["what"].startswith("Time"):
            panel["spans"] = _spans(circuits, pair, end)
    return {
        "name": experiment.name,
        "end_us": end,
        "digest": result.digest,
        "warnings": list(result.warnings),
        "summary": [
            [str(m), str(u), None if v != v else float(v)]
            for m, u, v in result.table("summary")[["metric", "unit", "value"]].itertuples(index=False)
        ],
        "fabric": _fabric(seen, result),
        "circuits": circuits,
        "pair": pair,
        "queues": _samples(result, arrays),
        "pauses": _pauses(result),
        "figure": {
            "ratio": 0.27 * len(panels),
            "columns": 1,
            "heights": [1 / len(panels)] * len(panels),
            "legend": "",
            "panels": [{**panel, "row": row} for row, panel in enumerate(panels)],
        },
        "numbers": arrays.text(),
    }


def _axis(label: str, high: float, names: list[tuple[float, str]] | None = None) -> dict[str, Any]:
    end = high if high > 0 else 1.0
    return {"label": label, "what": label, "log": False, "from": 0.0, "to": end, "names": names or []}


def _panel(y: str, end_us: float, curves: list[dict[str, Any]]) -> dict[str, Any]:
    most = max((float(np.max(c["y"])) for c in curves if len(c["y"])), default=0.0)
    return {
        "column": 0,
        "title": "",
        "group": 0,
        "note": "" if curves else "nothing arrived",
        "x": _axis("Time (ms)", end_us / 1e3),
        "y": _axis(y, 1.06 * most),
        "curves": curves,
        "spans": [],
    }


def _curve(label: str, color: str, x: Any, y: Any, **more: Any) -> dict[str, Any]:
    look = {
        "dash": [],
        "width": 1.4,
        "alpha": 1,
        "marker": "",
        "size": 4,
        "filled": True,
        "edge": color,
        "step": True,
    }
    return {"label": label, "color": color, **look, "x": x, "y": y, **more}


def _throughput(result: Result, end: float) -> dict[str, Any] | None:
    if "throughput" not in result.tables:
        return None
    frame = result.table("throughput")
    flows = frame.groupby("flow")["goodput_gbps"].sum().nlargest(FLOWS + 1)
    step = float(np.diff(np.unique(frame["time_us"])).min()) if frame["time_us"].nunique() > 1 else end
    grid = np.arange(0.0, end, step)

    def filled(part: pd.DataFrame) -> Any:
        """Intervals in which nothing arrived are zero."""
        sums = np.zeros(len(grid))
        places = np.minimum((part["time_us"].to_numpy() / step).round().astype(int), len(grid) - 1)
        np.add.at(sums, places, part["goodput_gbps"].to_numpy())
        return sums

    curves = [_curve("all flows", "", grid / 1e3, filled(frame), width=1.8)] if len(frame) else []
    if 1 < len(flows) <= FLOWS:
        for flow, color in zip(sorted(flows.index), cycle(COLORS), strict=False):
            part = frame[frame["flow"] == flow]
            curves.append(_curve(f"flow {flow}", color, grid / 1e3, filled(part), width=1.0))
    return _panel("Throughput (Gb/s)", end, curves)


def _queues(result: Result, end: float) -> dict[str, Any]:
    samples = result.table("queue_samples")
    what, unit, scale = (
        ("VOQ (packets)", "packets", 1.0) if _is_hybrid(result) else ("Queue (kB)", "bytes", 1e3)
    )
    most = samples.groupby("name", sort=False)[unit].max().nlargest(FLOWS)
    curves = [
        _curve(str(name), color, part["time_us"] / 1e3, part[unit] / scale)
        for (name, peak), color in zip(most.items(), cycle(COLORS), strict=False)
        if peak > 0
        for part in [samples[samples["name"] == name]]
    ]
    return _panel(what, end, curves)


def _is_hybrid(result: Result) -> bool:
    return bool(result.manifest["spec"]["fabric"]["kind"] == "hybrid")


def _windows(result: Result, end: float) -> dict[str, Any] | None:
    """Congestion windows over time, a curve for each of the flows with the most bytes."""
    if "throughput" not in result.tables:
        return None
    frame = result.table("throughput")
    most = frame.groupby("flow")["goodput_gbps"].sum().nlargest(FLOWS)
    step = in_us(result.manifest["spec"]["measure"]["throughput"])
    opened = frame[frame["cwnd_packets"] > 0]
    curves = [
        _curve(f"flow {flow}", color, (part["time_us"] + step) / 1e3, part["cwnd_packets"], width=1.0)
        for flow, color in zip(sorted(most.index), cycle(COLORS), strict=False)
        for part in [opened[opened["flow"] == flow]]
    ]
    panel = _panel("Window (packets)", end, curves)
    others = frame["flow"].nunique() - len(curves)
    return {**panel, "title": f"the {FLOWS} flows with the most bytes"} if others else panel


def _pair(result: Result) -> list[int] | None:
    measured = result.manifest["spec"].get("measure", {}).get("pair")
    return [int(rack) for rack in measured] if measured else None


def _circuits(seen: Mapping[str, Any], result: Result) -> dict[str, Any]:
    """When there are circuits: ``days`` are [from, until, source rack, destination rack]. They repeat every
    ``week_us``; if that is 0, as of a control loop, they do not."""
    if "circuits" in result.tables:
        frame = result.circuits[["start_us", "end_us", "src", "dst"]].head(MOST_CIRCUITS)
        return {"week_us": 0.0, "days": [list(row) for row in frame.itertuples(index=False, name=None)]}
    days = [
        [float(day["start_us"]), float(day["end_us"]), *map(int, pair.split("->"))]
        for day in seen["week"] or []
        for pair in str(day["matching"]).split()
    ]
    return {"week_us": float(seen["week_us"] or 0.0), "days": days}


def _spans(circuits: Mapping[str, Any], pair: list[int] | None, end: float) -> list[dict[str, Any]]:
    """The times at which the pair has the circuit, to be shaded."""
    week = circuits["week_us"] or end
    starts = np.arange(0.0, end, week)[:MOST_WEEKS]
    mine = [day[:2] for day in circuits["days"] if day[2:] == pair]
    look = {"axis": "x", "color": SKY, "alpha": 0.2, "label": "circuit"}
    return [{**look, "from": (at + a) / 1e3, "to": (at + b) / 1e3} for at in starts for a, b in mine]


def _samples(result: Result, arrays: Arrays) -> dict[str, Any]:
    """The length of each watched queue over time: packets of a VOQ, bytes of a port."""
    unit = "packets" if _is_hybrid(result) else "bytes"
    return {
        str(name): {"at": arrays.place(part["time_us"]), "held": arrays.place(part[unit])}
        for name, part in result.table("queue_samples").groupby("name", sort=False)
    }


def _pauses(result: Result) -> list[tuple[float, str, bool]]:
    """Beginnings and ends of pauses, in order."""
    if "pause_events" not in result.tables:
        return []
    events = result.table("pause_events").sort_values("at_us", kind="stable")
    return [
        (float(t), str(n), bool(p))
        for t, n, p in zip(events["at_us"], events["name"], events["paused"], strict=True)
    ]


def _fabric(seen: Mapping[str, Any], result: Result) -> dict[str, Any]:
    """The racks of a hybrid fabric, or switches, hosts and the links between them."""
    kind = str(seen["fabric"]["kind"])
    if kind == "hybrid":
        return {"kind": kind, "racks": int(seen["fabric"]["racks"])}
    ports = result.table("ports")
    links: list[tuple[str, str, str]] = []
    waiting: list[str] = []
    for name, what in zip(ports["name"], ports["kind"], strict=True):
        if what == "host_port":
            waiting.append(str(name).removesuffix(".port"))
        elif what == "switch_port":
            switch, to = str(name).split("->")
            links += [(switch, host, f"{host}.port") for host in waiting if kind != "graph"]
            links.append((switch, to, str(name)))
            waiting = []
    links += [("switch", host, f"{host}.port") for host in waiting if kind != "graph"]
    return {"kind": kind, "links": links}
