"""Why a flow took as long as it did: its account, by the tables ``account`` and ``account_events`` of a run.

Times are whole picoseconds and add up to the flow's completion time exactly.
"""

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any

import pandas as pd

from firstlight.errors import ResultError
from firstlight.runs.result import Result

PICOSECONDS = (("s", 10**12), ("ms", 10**9), ("us", 10**6), ("ns", 10**3))

PHRASES = {
    "computation": "while its program computed",
    "waited_for_others": "waiting for its start or for messages of other jobs",
    "application": "while its program had written nothing more",
    "reader": "until the receiving program read",
    "syn_loss": "waiting to send a lost SYN again",
    "delayed_ack": "waiting for delayed ACKs",
    "stack": "in the hosts' stacks",
    "processor": "while its hosts' processors worked",
    "pacing": "held back by the sender's pacer",
    "notice": "waiting for a notice of a circuit",
    "interface_room": "waiting for room in its host's interface",
    "host_pacer": "in the pacer of its host's interface",
    "rate_limiter": "held back by QCN's rate limiter",
    "interface_queue": "queueing{where}{who}",
    "window_probe": "waiting to probe a closed window",
    "rto": "waiting for a retransmission timeout",
    "tail_probe": "waiting for a tail loss probe",
    "fast_recovery": "until losses were found and repaired",
    "reordering": "waiting for the end of the reordering window",
    "serialization": "being serialized onto links",
    "propagation": "propagating",
    "queueing": "queueing{where}{who}",
    "packet_switch": "held because its queue in the packet switch was full",
    "no_circuit": "waiting for the circuit that alone carries elephants",
    "night": "in nights of the circuit switch",
    "day": "because the rest of the day was too short for a packet",
    "pause": "paused{where}{root}",
    "unknown": "for reasons that were not recorded",
}
"""What a sentence says of each cause."""

ROOM = {
    "congestion_window": "the congestion window",
    "receive_window": "the receive window",
    "send_buffer": "the send buffer",
}
"""What data may wait for room in, as a sentence names it, by the first word of ``waiting_for``."""

NAMED = 0.1
"""A cause of at least this part of the time stands in the sentence; the largest always does."""
ALL = 0.95
"""From this part on a sentence does not say what the rest was."""


@dataclass(frozen=True)
class AccountPart:
    """Neighbouring parts of a flow's time that have one cause, at one place."""

    name: str
    time_ps: int
    share: float
    """The part of the whole, 0 to 1."""


@dataclass(frozen=True)
class Event:
    """Neighbouring parts of a flow's time that have one cause, at one place."""

    at_ps: int
    time_ps: int
    cause: str
    where: str
    who: str
    """Whose packets it was: the one with most of the time, and how many others."""
    waiting_for: str
    detail: str


class Account:
    """The account of one complete flow, message or job."""

    def __init__(
        self, name: str, rows: pd.DataFrame, events: pd.DataFrame, label: str, flow: int = -1
    ) -> None:
        self.name = name
        """``flow 7``."""
        self.flow = flow
        """The flow's number; -1 for a message or a job."""
        self.rows = rows
        """Rows of table ``account``."""
        self.events = events
        """Rows of table ``account_events`` in order; none unless the flow is among the slowest."""
        self.label = label
        """The flow's ends, workload and size."""
        self.total_ps = int(rows["time_ps"].sum())

    def parts(self, column: str = "cause") -> list[AccountPart]:
        """Time by ``cause``, ``waiting_for``, ``where`` or ``who``, the most first."""
        sums = self.rows.groupby(column)["time_ps"].sum().sort_values(ascending=False, kind="stable")
        return [
            AccountPart(str(name), int(time), int(time) / max(self.total_ps, 1))
            for name, time in sums.items()
        ]

    def sentence(self) -> str:
        """What took the time, in one sentence."""
        parts = self.parts()
        named = [part for i, part in enumerate(parts[:3]) if i == 0 or part.share >= NAMED]
        phrases = [
            f"{duration(part.time_ps)} {'' if i else 'of them '}{self._phrase(part)}"
            for i, part in enumerate(named)
        ]
        waited = self._waited()
        cause, loss = self._first_loss()
        reported = [i for i, part in enumerate(named) if part.name == cause]
        if loss and reported == [len(named) - 1] and not waited:
            phrases[-1] += f": {loss}"
        elif loss and reported:
            phrases[reported[0]] += f" ({loss})"
        elif loss:
            waited += f"; {loss}"
        return f"{self.name} took {duration(self.total_ps)}, {', '.join(phrases)}{waited}."

    def _waited(self) -> str:
        """What the next data waited for in half of the time or more, if it was room."""
        for first, room in ROOM.items():
            time = int(self.rows.loc[self.rows["waiting_for"].str.startswith(first), "time_ps"].sum())
            if 0 < self.total_ps / 2 <= time:
                return f"; for {duration(time)} its next data waited for room in {room}"
        return ""

    def chain(self) -> list[Event]:
        """The parts of the time in order; those that differ in ``who`` alone are one."""
        same = itemgetter("cause", "where", "waiting_for", "detail")
        return [self._event(list(rows)) for _, rows in groupby(self.events.to_dict("records"), same)]

    def _event(self, rows: list[dict[Hashable, Any]]) -> Event:
        first, times = rows[0], Counter[str]()
        for row in rows:
            times[row["who"]] += row["time_ps"]
        most = max(sorted(times), key=times.__getitem__)
        others = max(len(times) - 1, *(row["others"] for row in rows))
        who = "itself" if most == f"flow {self.flow}" else most
        return Event(
            first["at_ps"],
            times.total(),
            first["cause"],
            first["where"],
            f"{who} and {others} more" if others else who,
            first["waiting_for"],
            first["detail"],
        )

    def _phrase(self, part: AccountPart) -> str:
        own = self.rows[self.rows["cause"] == part.name]

        def most(column: str) -> tuple[str, float, int]:
            """The name with most of the time, its part of all, and how many others there are."""
            sums = own.groupby(column)["time_ps"].sum()
            return str(sums.idxmax()), int(sums.max()) / part.time_ps, len(sums) - 1

        (where, here, _), (who, share, others) = most("where"), most("who")
        return PHRASES[part.name].format(
            where=f" at {where}" if here >= ALL else f" ({here * 100:.0f} % at {where})",
            who=f" behind {self._whose(who, share, others)}" if who else "",
            root=(f" by {who}" if share >= ALL else f" ({share * 100:.0f} % by {who})") if who else "",
        )

    def _whose(self, most: str, share: float, others: int) -> str:
        """Whose packets stood ahead, of which one flow had most."""
        if share < 1 / 2:
            return f"packets of {others + 1} flows"
        whose = "its own packets" if most == f"flow {self.flow}" else f"packets of {most}"
        rest = "those of another flow" if others == 1 else f"those of {others} other flows"
        return whose if share >= ALL else f"{whose} and {rest}"

    def _first_loss(self) -> tuple[str, str]:
        """The cause of the longest event with a loss, and what happened to the packet; empty without one."""
        if self.events.empty:
            return "", ""
        losses = self.events[self.events["detail"] != ""].sort_values(
            "time_ps", ascending=False, kind="stable"
        )
        if losses.empty or int(losses["time_ps"].iloc[0]) < NAMED * self.total_ps:
            return "", ""
        others = losses["detail"].nunique() - 1
        segments = "segment was" if others == 1 else "segments were"
        more = f"; {others} more {segments} sent again" if others else ""
        return str(losses["cause"].iloc[0]), f"{losses['detail'].iloc[0]}{more}"


def accounts(result: Result) -> dict[int, Account]:
    """The account of each complete flow. Raises :class:`ResultError` for a run without accounts."""
    if "account" not in result.tables:
        raise ResultError(
            f"{result.path or result.name}: this result has no account of its flows: run it again with --set "
            "measure.account=true"
        )
    rows, events = result.table("account"), result.table("account_events")
    flows = result.flows.set_index("id")
    found = {}
    for flow, own in rows.groupby("flow", sort=True):
        number = int(str(flow))
        ends = flows.loc[number]
        label = f"host{ends['src']} to host{ends['dst']}, {ends['size_bytes']} B, {ends['workload']}"
        found[number] = Account(f"flow {number}", own, events[events["flow"] == number], label, number)
    return found


def choice(result: Result) -> list[str]:
    """The list of flows in the run's ``measure.account``; empty where all flows have an account."""
    measure = result.manifest["spec"]["measure"]
    return list(measure["account"]) if isinstance(measure["account"], list) else []


def chosen(result: Result, flow: int | None, slowest: int) -> list[Account]:
    """The account of ``flow``, or those of the ``slowest`` complete flows, the slowest first."""
    all_ = accounts(result)
    if flow is None:
        if not all_:
            which = f"that measure.account = {choice(result)} chooses" if choice(result) else "of this run"
            raise ResultError(f"{result.path or result.name}: no flow {which} was complete at its end")
        return sorted(all_.values(), key=lambda account: (-account.total_ps, account.flow))[:slowest]
    if flow in all_:
        return [all_[flow]]
    flows = len(result.flows)
    if flow < flows and result.flows.set_index("id")["fct_us"].notna()[flow]:
        raise ResultError(
            f"--flow {flow}: measure.account = {choice(result)} does not choose this flow: run it again with "
            f"--set 'measure.account=[\"flow {flow}\"]'"
        )
    if flow < flows:
        raise ResultError(f"--flow {flow}: this flow was not complete at the end of the run: make it longer")
    raise ResultError(f"--flow {flow}: there is no such flow: the run has flows 0 to {flows - 1}")


def picoseconds(us: float) -> int:
    """A time of another table in whole picoseconds."""
    return round(us * 1e6)


def duration(time_ps: int) -> str:
    """A time as a person would write it."""
    for unit, size in PICOSECONDS:
        if abs(time_ps) >= size:
            return f"{time_ps / size:.4g} {unit}"
    return f"{time_ps} ps"
