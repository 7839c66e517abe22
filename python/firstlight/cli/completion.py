"""The command ``firstlight completion``."""

import click
from click.shell_completion import get_completion_class

SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print what makes SHELL complete our commands and options.

    \b
    bash: firstlight completion bash > ~/.local/share/bash-completion/completions/firstlight
    zsh:  firstlight completion zsh > ~/.zfunc/_firstlight  (a folder of $fpath)
    fish: firstlight completion fish > ~/.config/fish/completions/firstlight.fish
    """
    kind = get_completion_class(shell)
    assert kind is not None, "click knows these shells"
    click.echo(kind(context.find_root().command, {}, "firstlight", "_FIRSTLIGHT_COMPLETE").source())
