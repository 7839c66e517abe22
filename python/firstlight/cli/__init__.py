"""The command line: ``firstlight run | sweep | compare | schedule | goal | reproduce | list | report |
inspect | schema | kernel | doctor``.

Results go to standard output, progress and errors to standard error. Exit code 0: done; 2: wrong input; 1: a
run failed; 130: Ctrl-C.
"""

import sys
from collections.abc import Callable

import click

from firstlight import core
from firstlight.cli.experiments import compare, inspect, run, schema, sweep
from firstlight.cli.goal import goal
from firstlight.cli.linux import doctor, kernel
from firstlight.cli.reproductions import list_, report, reproduce
from firstlight.cli.schedule import schedule
from firstlight.errors import FirstlightError, RunError


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(core.version(), prog_name="firstlight")
def app() -> None:
    """A laboratory for datacenter transport: how will this transport behave on that fabric?"""


for command in (
    run,
    sweep,
    compare,
    reproduce,
    list_,
    report,
    inspect,
    schema,
    schedule,
    goal,
    kernel,
    doctor,
):
    app.add_command(command)


def guarded(command: Callable[[], object]) -> int:
    """Run ``command``; an error becomes one line on standard error and an exit code, never a traceback."""
    try:
        command()
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
    except BrokenPipeError:
        sys.stderr.close()
        return 141
    return 0


def main() -> None:
    """Entry point of the ``firstlight`` command."""
    sys.exit(guarded(lambda: app(standalone_mode=False)))
