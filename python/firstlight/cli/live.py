"""The command ``firstlight live``."""

import click

from firstlight.cli.options import parse_settings, set_option


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
    from firstlight.live.bench import Bench
    from firstlight.live.server import Server

    server = Server(Bench.read(experiment, parse_settings(settings)), port)
    click.echo(f"{server.address}\nopen it in a browser on this machine; Ctrl-C ends the server")
    server.run()
