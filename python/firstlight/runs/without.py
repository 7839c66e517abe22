"""The gain of removing a cause: the experiment of a result without that cause, run again with the same seed.

An account says what was on the path of a flow. Whether the flow would have been faster without it only a
second run can say: another wait may have been as long beside it.
"""

import copy
import re
from dataclasses import dataclass
from typing import Any

import pandas as pd

from firstlight import _core
from firstlight.errors import PlanError, ResultError
from firstlight.linux.installed import has_linux_hosts
from firstlight.numbers import quantiles
from firstlight.runs.account import Account
from firstlight.runs.again import run_again
from firstlight.runs.result import Result

CAUSES = {
    "rto": ("rto", "tail_probe", "reordering"),
    "loss": ("rto", "tail_probe", "fast_recovery", "reordering", "syn_loss"),
    "pause": ("pause",),
    "night": ("night",),
}
"""The features that can be removed, each with the causes of an account that it concerns."""
QUEUEING = ("queueing", "interface_queue")
"""The causes of an account that a flow's absence concerns, where its packets stood ahead."""
FORMS = "rto, loss, pause, night, or queueing:N for flow N"
MOST_PACKETS = 16_777_216
"""The largest queue that counts packets."""
MOST_BYTES = "1099511627776B"


def check(cause: str) -> str:
    """``cause``, if it can be taken away; raises :class:`PlanError`."""
    if cause not in CAUSES and _flow(cause) is None:
        raise PlanError(f"--without {cause}: write {FORMS}")
    return cause


def _flow(cause: str) -> int | None:
    """The flow of ``queueing:FLOW``; ``None`` for other causes."""
    found = re.fullmatch(r"queueing:([0-9]{1,18})", cause)
    return int(found[1]) if found else None


def blamed(account: Account, cause: str) -> int:
    """The picoseconds that an account gives to a cause that can be taken away."""
    flow, rows = _flow(cause), account.rows
    own = rows["cause"].isin(CAUSES[cause] if flow is None else QUEUEING)
    if flow is not None:
        own &= rows["who"] == f"flow {flow}"
    return int(rows.loc[own, "time_ps"].sum())


def rerun(result: Result, cause: str) -> Result:
    """The experiment of ``result`` without a cause, run with the same seed.

    Raises :class:`PlanError` where the experiment has no such cause or has Linux hosts, and
    :class:`ResultError` where the files that it names have changed."""
    resolved = result.manifest.get("spec")
    if not isinstance(resolved, dict) or "fabric" not in resolved:
        raise ResultError(f"{result.path or result.name}: has no experiment on a network to run again")
    if has_linux_hosts(resolved):
        raise PlanError("--without is for simulated hosts: a kernel cannot be told to leave a cause out")
    flow = _flow(cause)
    if flow is not None and flow >= len(result.flows):
        raise PlanError(
            f"--without {cause}: there is no flow {flow}: the run has flows 0 to {len(result.flows) - 1}"
        )
    return run_again(result, _changed(resolved, cause))


def _changed(resolved: dict[str, Any], cause: str) -> dict[str, Any]:
    """The experiment without a cause."""
    spec = copy.deepcopy(resolved)
    match cause:
        case "rto":
            _without_timeouts(spec)
        case "loss":
            _without_loss(spec)
        case "pause":
            _without_pauses(spec)
        case "night":
            _without_nights(spec)
        case _:
            spec["leave_out"] = [*spec.get("leave_out", []), _flow(cause)]
    return spec


def _without_timeouts(spec: dict[str, Any]) -> None:
    """Timeouts as short as round trips allow: no floor, and clocks that do not tick."""
    spec.setdefault("tcp", {}).update({"rto_min": "1us", "rto_variance": "0s", "tick": "0s"})


def _without_loss(spec: dict[str, Any]) -> None:
    """Queues without limits, which still mark what can be marked."""
    spec.get("hosts", {}).pop("loss", None)
    switch = spec.get("switch", {})
    switch.pop("buffer", None)
    switch.pop("alpha", None)
    for queue in (switch, *switch.get("classes", []), *switch.get("ports", [])):
        queue.pop("queue", None)
        queue.pop("drop_non_ect", None)
        _mark_only(spec, queue)
    _unlimited_voqs(spec)
    _mark_only(spec, spec.get("voq", {}))
    if "drain" in spec.get("adapter", {}):
        spec["adapter"]["receive_buffer"] = MOST_BYTES


def _mark_only(spec: dict[str, Any], queue: dict[str, Any]) -> None:
    """What drops packets early marks them instead, or is taken out where it can only drop."""
    marks = spec.get("tcp", {}).get("ecn") or "dctcp" in spec
    for table, key in _core.dropping_tables().items():
        if table in queue and key and marks:
            queue[table][key] = False
        else:
            queue.pop(table, None)


def _unlimited_voqs(spec: dict[str, Any]) -> None:
    if spec["fabric"]["kind"] == "hybrid":
        voq = spec.setdefault("voq", {})
        voq.update({key: MOST_PACKETS for key in ("small", "large") if key == "small" or key in voq})


def _without_pauses(spec: dict[str, Any]) -> None:
    if spec.get("pfc", {}).get("kind", "off") == "off":
        raise PlanError("--without pause: this experiment has no [pfc], and so no pauses")
    del spec["pfc"]
    if "small" not in spec.get("voq", {}):
        _unlimited_voqs(spec)
    if "drain" in spec.get("adapter", {}):
        spec["adapter"]["receive_buffer"] = MOST_BYTES


def _without_nights(spec: dict[str, Any]) -> None:
    """A circuit switch that reconfigures in no time: a day begins where its night began."""
    schedule = spec.get("schedule")
    if schedule is None:
        raise PlanError("--without night: this experiment has no circuit switch, and so no nights")
    night = schedule["night"]
    for table in (schedule, *schedule.get("days", [])):
        if "day" in table:
            table["day"] = f"{_core.ps_of(table['day']) + _core.ps_of(night)}ps"
    if "week" in schedule:
        schedule.setdefault("least_day", night)
    schedule["night"] = "0s"


@dataclass(frozen=True)
class Worth:
    """Completion times in microseconds with a cause and without it."""

    what: str
    before: float
    after: float


def worth(before: Result, after: Result, flows: list[int]) -> list[Worth]:
    """The times of these flows with and without the cause, and of all flows that were complete in both runs.
    A flow that is not complete without the cause has NaN."""
    with_, without = (result.flows.set_index("id")["fct_us"] for result in (before, after))
    rows = [Worth(f"flow {flow}", float(with_[flow]), float(without[flow])) for flow in flows]
    both = pd.concat([with_, without], axis=1, keys=["with", "without"]).dropna()
    if len(both) > 1:
        found = (quantiles(both[run], (0.5, 0.99)) for run in ("with", "without"))
        for name, (a, b) in zip(("median", "p99"), zip(*found, strict=True), strict=True):
            rows.append(Worth(f"{name} of {len(both)} flows", float(a), float(b)))
    return rows
