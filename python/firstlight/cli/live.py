"""The command ``firstlight live``."""

from pathlib import Path

import click

from firstlight.cli.options import parse_settings, set_option
from firstlight.errors import SpecError


@click.command()
@click.argument("experiment", metavar="FILE|SCENE")
@set_option
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, help="Port of the page (default: any free one)."
)
def live(experiment: str, settings: tuple[str, ...], port: int) -> None:
    """Serve a page that shows the experiment in FILE, with sliders for its numbers: each change reruns it.

    SCENE: dynamic-voqs, incast or pause-tree, experiments that come with Firstlight. The page is for this
    machine alone; Ctrl-C ends it.
    """
    from firstlight.live.bench import Bench, scenes
    from firstlight.live.server import Server

    file = Path(experiment)
    known = scenes()
    if not file.exists() and experiment in known:
        file = known[experiment]
    elif not file.exists():
        raise SpecError(f"{experiment}: no such file; scenes that come with Firstlight: {', '.join(known)}")
    server = Server(Bench.read(file, parse_settings(settings)), port)
    click.echo(f"{server.address}\nopen it in a browser on this machine; Ctrl-C ends the server")
    server.run()
