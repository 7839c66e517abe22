"""Options that several commands have."""

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click

from firstlight.core import PATIENCE, Timeline, check_patience, named
from firstlight.errors import PlanError, SpecError
from firstlight.numbers import whole
from firstlight.runs.run import DILATED, HOSTS
from firstlight.runs.shards import Shard

LAST_FLOW = 10_000_000
"""No experiment has a flow of a larger number."""
LONGEST_NAME, LONGEST_PATH = 255, 4095
"""Bytes of a file's name, and of all of a path."""
TIMELINES = (".pftrace", ".perfetto-trace")
"""Endings of timelines' names: such a file may be written anew."""


class _NamedPath(click.Path):
    """A path; a name without a letter, as of a shell's variable that is not set, is no directory."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path of a name."""
        if value == "":
            self.fail("an empty name; name a file or a directory", param, ctx)
        path = os.fsencode(value)
        if len(path) > LONGEST_PATH or any(len(part) > LONGEST_NAME for part in path.split(b"/")):
            most = f"a name has at most {LONGEST_NAME} bytes, and a path {LONGEST_PATH}"
            self.fail(f"{named(value)}: too long: {most}", param, ctx)
        return super().convert(value, param, ctx)


File = _NamedPath(path_type=Path)
set_option = click.option(
    "--set",
    "settings",
    metavar="KEY=VALUE",
    multiple=True,
    help="Replace a key of the file, e.g. voq.large=50.",
)
hosts_option = click.option(
    "--hosts",
    type=click.Choice([*HOSTS, DILATED]),
    help="Whose TCP the hosts run; the same as --set hosts.kind=...",
)


def _seconds(_: click.Context, __: click.Parameter, value: float) -> float:
    try:
        return check_patience(value)
    except PlanError as e:
        raise click.BadParameter(str(e)) from None


patience_option = click.option(
    "--patience",
    type=float,
    callback=_seconds,
    default=PATIENCE,
    show_default=True,
    metavar="SECONDS",
    help="How long the virtual time of Linux hosts may stand still before a run is ended.",
)
jobs_option = click.option(
    "--jobs", type=click.IntRange(min=1), help="Runs side by side (default: all cores)."
)


seeds_option = click.option(
    "--seeds",
    type=click.IntRange(min=2),
    metavar="N",
    help="Run with N seeds, from the experiment's own on; shows means with 95 % intervals.",
)


def shard_options(command: Callable[..., None]) -> Callable[..., None]:
    """The options ``--shard``, ``--status`` and ``--collect`` of commands that run many points."""
    for option in (
        click.option("--collect", is_flag=True, help="Only put together what shards have left."),
        click.option("--status", is_flag=True, help="Only say how many points are finished."),
        click.option(
            "--shard", metavar="I/N", help="Run only the I-th of N parts, for batch systems; then --collect."
        ),
    ):
        command = option(command)
    return command


def machine_options(command: Callable[..., None]) -> Callable[..., None]:
    """The options of a run in dilated time whose hosts are on several machines."""
    for option in (
        click.option(
            "--machine",
            "machines",
            multiple=True,
            metavar="NAME=HOST,...",
            help="Hosts or racks in dilated time that are on another machine, which joins under this name "
            "(`firstlight join`); several times for several machines.",
        ),
        click.option("--listen", metavar="ADDRESS:PORT", help="This machine's address for those that join."),
        token_option(required=False),
        click.option(
            "--join-wait",
            type=click.FloatRange(min=0, max=86400),
            default=60.0,
            show_default=True,
            metavar="SECONDS",
            help="How long to wait for the machines.",
        ),
    ):
        command = option(command)
    return command


def token_option(*, required: bool) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """The file with the token of machines that join."""
    return click.option(
        "--token",
        type=File,
        required=required,
        envvar="FIRSTLIGHT_TOKEN_FILE",
        help="File with the token that both sides have, 16 bytes or more (FIRSTLIGHT_TOKEN_FILE).",
    )


@contextlib.contextmanager
def machines_joined(
    machines: tuple[str, ...], listen: str | None, token: Path | None, wait: float, *, dilated: bool
) -> Iterator[None]:
    """Inside, runs wait for the machines that the options name; for none without ``--machine``."""
    if not machines:
        if listen:
            raise PlanError("--listen is for machines that join: name them by --machine NAME=HOST,...")
        yield
        return
    if not dilated:
        raise PlanError(
            '--machine is for hosts in dilated time: set hosts.kind = "dilated" (--hosts dilated)'
        )
    if listen is None or token is None:
        raise PlanError("--machine needs --listen ADDRESS:PORT and --token FILE")
    from firstlight.dilated.machines import joined

    hosts: dict[str, list[str]] = {}
    for text in machines:
        name, equals, names = text.partition("=")
        wanted = [host for host in names.split(",") if host]
        if not name or not equals or not wanted:
            raise PlanError(f"--machine {text}: write NAME=HOST,... with hosts or racks, as b=rack1,host7")
        if name in hosts:
            raise PlanError(f"--machine {text}: {name} is named twice; list all of its hosts in one option")
        hosts[name] = wanted
    with joined(hosts, listen=listen, token=token, wait=wait):
        yield


def part_of(shard: str | None, status: bool, collect: bool) -> Shard | None:
    """The shard to run, if the options name one; raises :class:`PlanError` for options that exclude each
    other."""
    if (shard is not None) + status + collect > 1:
        raise PlanError("--shard, --status and --collect are three things to do: give one of them")
    return None if shard is None else Shard.parse(shard)


def trace_options(command: Callable[..., None]) -> Callable[..., None]:
    """The options of a run's timeline."""
    for option in (
        click.option(
            "--trace-span", metavar="FROM:UNTIL", help="Times of the timeline, e.g. 1ms:2ms or 1ms: ."
        ),
        click.option(
            "--trace-flows",
            metavar="N,...",
            help="Flows of the timeline, e.g. 0,3-5, and the queues they pass.",
        ),
        click.option("--trace", type=File, help="Write a timeline for ui.perfetto.dev, e.g. out.pftrace."),
    ):
        command = option(command)
    return command


def timeline_of(path: Path | None, flows: str | None, span: str | None) -> Timeline | None:
    """The timeline that is asked for, if any; raises :class:`PlanError` for flows or times that are none."""
    if path is None:
        if flows is not None or span is not None:
            raise PlanError("--trace-flows and --trace-span need --trace FILE")
        return None
    if path.exists() and path.suffix not in TIMELINES:
        raise PlanError(
            f"--trace {named(path)}: exists and is not a timeline; name a file such as out.pftrace"
        )
    if not path.parent.is_dir():
        raise PlanError(f"--trace {named(path)}: there is no directory {named(path.parent)}; make it first")
    start, colon, end = (span or ":").partition(":")
    if not colon:
        raise PlanError(f"--trace-span {span}: FROM:UNTIL is needed, such as 1ms:2ms")
    return Timeline(
        path, None if flows is None else _numbers(flows), start.strip() or None, end.strip() or None
    )


def _numbers(text: str) -> list[int]:
    """``"0,3-5"`` -> ``[0, 3, 4, 5]``."""
    found: list[int] = []
    shown = text if len(text) <= 100 else f"{text[:100]}..."
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        begin, end = whole(first), whole(last if dash else first)
        if begin is None or end is None:
            raise PlanError(f"--trace-flows {shown}: numbers of flows are needed, such as 0,3-5")
        if end < begin:
            raise PlanError(f"--trace-flows {shown}: it ends before it begins: write {end}-{begin}")
        if end > LAST_FLOW:
            raise PlanError(f"--trace-flows {shown}: there is no flow of such a number")
        found += range(begin, end + 1)
    return found


json_option = click.option("--json", "as_json", is_flag=True, help="Print as JSON.")


def parse_settings(settings: tuple[str, ...], hosts: str | None = None) -> dict[str, Any]:
    """``("voq.large=50",)`` -> ``{"voq.large": "50"}``; the core reads each text by its key's type."""
    overrides: dict[str, Any] = {} if hosts is None else {"hosts.kind": hosts}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not key.strip():
            raise SpecError(f"--set {setting}: KEY=VALUE is needed, such as --set voq.large=50")
        if key.strip() in overrides:
            raise SpecError(f"--set {key.strip()}: given twice")
        overrides[key.strip()] = value.strip()
    return overrides
