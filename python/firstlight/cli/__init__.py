"""The command line: ``firstlight run | sweep | compare | diff | explain | schedule | cc | goal | reproduce |
list | report | live | bundle | rerun | inspect | schema | kernel | doctor | join | cache | completion``.

Results go to standard output, progress and errors to standard error. Exit code 0: done; 2: wrong input; 1: a
run failed; 130: Ctrl-C; 143, 129: SIGTERM, SIGHUP.
"""

import contextlib
import difflib
import errno
import importlib
import io
import os
import signal
import sys
from collections.abc import Callable

import click

from firstlight import core
from firstlight.errors import FirstlightError, RunError

COMMANDS = {
    "run": "experiments",
    "sweep": "experiments",
    "compare": "experiments",
    "diff": "experiments",
    "explain": "explain",
    "reproduce": "reproductions",
    "list": "reproductions",
    "report": "reproductions",
    "live": "live",
    "bundle": "bundle",
    "rerun": "bundle",
    "inspect": "experiments",
    "schema": "experiments",
    "schedule": "schedule",
    "cc": "cc",
    "goal": "goal",
    "kernel": "linux",
    "doctor": "linux",
    "join": "join",
    "cache": "linux",
    "completion": "completion",
}
"""The file of each command, which is imported when the command is used: all of them take 0.6 s."""


class Commands(click.Group):
    """The commands, each imported when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Their names."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a name."""
        if cmd_name not in COMMANDS:
            return None
        file = importlib.import_module(f"firstlight.cli.{COMMANDS[cmd_name]}")
        # Not before: in some callbacks of an import Python drops the exception.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        command: click.Command = getattr(file, "list_" if cmd_name == "list" else cmd_name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the arguments name; the error for an unknown name suggests the nearest one."""
        name = args[0]
        if name.endswith(".toml"):
            ctx.fail(f"No such command '{name}': write 'firstlight run {name}'.")
        if near := difflib.get_close_matches(name, [] if name in COMMANDS else COMMANDS, 1):
            ctx.fail(f"No such command '{name}': did you mean '{near[0]}'?")
        return super().resolve_command(ctx, args)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(core.version(), prog_name="firstlight")
def app() -> None:
    """A laboratory for datacenter transport: how will this transport behave on that fabric?"""


def guarded(command: Callable[[], object]) -> int:
    """Run ``command``; an error becomes one line on standard error and an exit code, never a traceback."""
    try:
        command()
        sys.stdout.flush()
    except click.exceptions.Exit as e:
        return e.exit_code
    except click.ClickException as e:
        e.show()
        return e.exit_code
    except RunError as e:
        click.echo(f"error: {e}", err=True)
        return 1
    except FirstlightError as e:
        click.echo(f"error: {e}", err=True)
        return 2
    except (KeyboardInterrupt, click.Abort):
        click.echo("interrupted; what was finished is kept", err=True)
        return 130
    except Ended as e:
        click.echo(f"ended by {e.signal.name}; what was finished is kept", err=True)
        return 128 + e.signal
    except MemoryError:
        click.echo("error: there is not enough memory; run something smaller, or with fewer --jobs", err=True)
        return 1
    except ImportError as e:  # a library that does not fit into memory, or is not installed whole
        click.echo(
            f"error: {e.name or 'a package'} cannot be loaded: {str(e).strip().splitlines()[-1]}", err=True
        )
        return 1
    except BrokenPipeError:
        sys.stderr.close()
        return 141
    except OSError as e:
        place = e.filename or ("standard output" if e.errno in OF_WRITING else "")
        click.echo(f"error: {f'{core.named(place)}: ' if place else ''}{e.strerror or e}", err=True)
        return 2 if e.errno == errno.ENAMETOOLONG else 1
    return 0


OF_WRITING = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)
"""Errors of writing. One that names no file is of standard output."""


class Ended(BaseException):
    """A signal asked the command to end; what it has begun is cleaned up on the way out."""

    def __init__(self, which: int) -> None:
        super().__init__()
        self.signal = signal.Signals(which)


def _end(which: int, _: object) -> None:
    for later in ENDING:
        signal.signal(later, lambda *_: None)  # once is enough: a second one must not stop the cleaning
    raise Ended(which)


ENDING = (signal.SIGTERM, signal.SIGHUP)
"""Signals that end a command as Ctrl-C does."""


def main() -> None:
    """Run the command that the arguments name, and exit with its code."""
    for one in ENDING:
        if signal.getsignal(one) != signal.SIG_IGN:  # nohup
            signal.signal(one, _end)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    code = guarded(lambda: app(standalone_mode=False, prog_name="firstlight"))
    _discard_unwritten()
    sys.exit(code)


def _discard_unwritten() -> None:
    """What could not be written to standard output is not tried again at exit."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
