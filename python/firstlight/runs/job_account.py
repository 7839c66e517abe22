"""Why a job or a message took as long as it did: the causes on its critical path.

They are in the tables ``job_paths``, ``message_account`` and ``account`` of a run.

Times are whole picoseconds. Those of a job add up to the time from its start to its end exactly.
"""

import json
from dataclasses import dataclass

import pandas as pd

from firstlight.errors import ResultError
from firstlight.numbers import whole
from firstlight.runs.account import Account, accounts, choice, duration, picoseconds
from firstlight.runs.result import Result

WAIT = "waited_for_others"
"""The cause of the time in which a step of a job waited for its start, or for a message of another job."""


@dataclass(frozen=True)
class PathStep:
    """A message, or a flow without messages, on the critical path of a job."""

    name: str
    """``message 7 (host1 to host5, 30000 B)``."""
    time_ps: int
    """From the end of the step before to its own."""
    account: Account


class JobAccount:
    """The account of one complete job."""

    def __init__(self, name: str, steps: list[PathStep]) -> None:
        self.name = name
        """``job 2 of write``."""
        self.steps = steps
        """The steps of its critical path, in order."""
        rows = pd.concat([step.account.rows for step in steps], ignore_index=True)
        self.total = Account(name, rows, NO_EVENTS, "")
        """The account of all steps together."""

    def sentence(self) -> str:
        """What took the job's time, and its slowest part, in one sentence."""
        slowest = max(self.steps, key=lambda step: step.time_ps)
        parts = len(self.steps)
        path = f"the slowest of {parts} parts of its path was" if parts > 1 else "its path was"
        text = self.total.sentence().removesuffix(".")
        return f"{text}; {path} {slowest.name}: {duration(slowest.time_ps)}."


NO_EVENTS = pd.DataFrame(
    {name: [] for name in ("at_ps", "time_ps", "cause", "where", "waiting_for", "detail")}
)


def job_account(result: Result, job: str) -> JobAccount:
    """The account of a job, ``2`` or ``write:2``: its number, with its workload where several have jobs."""
    of_flows = accounts(result)
    if "job_paths" not in result.tables:
        raise ResultError(f"--job {job}: this experiment has no jobs")
    workload, number = _named(result, job)
    paths = result.table("job_paths")
    own = paths[(paths["workload"] == workload) & (paths["job"] == number)]
    if own.empty:
        raise ResultError(f"--job {job}: this job was not complete at the end of the run: make it longer")
    steps = []
    for _, step in own.iterrows():
        message, flow, wait_ps = int(step["message"]), int(step["flow"]), picoseconds(float(step["start_us"]))
        if message < 0 and flow not in of_flows:
            raise ResultError(
                f"--job {job}: flow {flow} is on its path, and has no account: measure.account = "
                f"{choice(result)} does not choose it"
            )
        inside = of_flows[flow] if message < 0 else message_account(result, message)
        rows, who = inside.rows, inside.name
        if wait_ps:
            wait = {"waiting_for": "application", "cause": WAIT, "where": "", "who": "", "time_ps": wait_ps}
            rows = pd.concat([pd.DataFrame([wait]), rows], ignore_index=True)
        account = Account(who, rows, NO_EVENTS, inside.label, inside.flow)
        steps.append(PathStep(f"{who} ({inside.label})", account.total_ps, account))
    return JobAccount(f"job {number} of {workload}", steps)


def message_account(result: Result, message: int) -> Account:
    """The account of a complete message, from when it was ready."""
    accounts(result)
    if "message_account" not in result.tables:
        raise ResultError(f"--message {message}: this experiment has no messages")
    table = result.table("message_account")
    rows = table[table["message"] == message]
    if rows.empty:
        named = [*(choice(result) or ["*"]), f"message {message}"]
        raise ResultError(
            f"--message {message}: there is no such message, it was not complete at the end, or it is on no "
            f"job's critical path: then run it again with --set 'measure.account={json.dumps(named)}'"
        )
    return Account(f"message {message}", rows, NO_EVENTS, _label(result, message))


def _label(result: Result, message: int) -> str:
    """The ends and the size of a message, as far as a critical path has it."""
    paths = result.table("job_paths")
    steps = paths[paths["message"] == message]
    if steps.empty:
        return "on no job's critical path"
    step = steps.iloc[0]
    if int(step["flow"]) < 0:
        return "computation"
    ends = result.flows.set_index("id").loc[int(step["flow"])]
    return f"host{ends['src']} to host{ends['dst']}, {step['bytes']} B"


def _named(result: Result, job: str) -> tuple[str, int]:
    """Workload and number of a job as users write it."""
    jobs = result.table("jobs")
    workload, colon, text = job.rpartition(":")
    names = list(dict.fromkeys(jobs["workload"]))
    if not colon:
        if len(names) > 1:
            raise ResultError(f"--job {job}: {', '.join(names)} have jobs: write {names[0]}:{job}")
        workload = names[0]
    own = jobs[jobs["workload"] == workload]
    if own.empty:
        raise ResultError(f"--job {job}: no workload {workload!r} has jobs: write one of {', '.join(names)}")
    if (number := whole(text)) not in set(own["job"]):
        raise ResultError(f"--job {job}: there is no such job: {workload} has jobs 0 to {max(own['job'])}")
    assert number is not None, "a job has a number"
    return workload, number
