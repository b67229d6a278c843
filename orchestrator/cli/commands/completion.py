"""`toolwright completion`: print a shell's completion script."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from orchestrator.cli.main import toolwright

VARIABLE = "_TOOLWRIGHT_COMPLETE"


@click.command("completion")
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
def completion_command(shell: str) -> None:
    """Print a shell's completion script. For bash: `eval "$(toolwright completion bash)"` in
    ~/.bashrc; for zsh the same in ~/.zshrc; for fish:
    `toolwright completion fish > ~/.config/fish/completions/toolwright.fish`.
    """
    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(toolwright, {}, "toolwright", VARIABLE).source())
