"""The command ``firstlight join``."""

import socket
from pathlib import Path

import click

from firstlight.cli.options import token_option


@click.command()
@click.argument("address")
@token_option(required=True)
@click.option("--name", help="This machine's name in the run's --machine option (default: its host name).")
@click.option("--once", is_flag=True, help="End after one run, instead of waiting for the next one.")
def join(address: str, token: Path, name: str | None, once: bool) -> None:
    """Let this machine have hosts of runs in dilated time whose fabric is on another one.

    ADDRESS is what the other machine's `firstlight run --hosts dilated --machine NAME=HOST,... --listen
    ADDRESS:PORT --token FILE` listens at; TCP and UDP must pass. Both need the same version and the same
    token. Ctrl-C ends it.
    """
    from firstlight.dilated.join import serve

    serve(address, token, name or socket.gethostname(), lambda line: click.echo(line), once=once)
