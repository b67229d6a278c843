"""`toolwright completion`: print a shell's completion script."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from orchestrator.cli.main import COMPLETING, toolwright

_BASH_END = "    return 0\n}"
_BASH_END_OPEN = f'    [[ "${{COMPREPLY[0]}}" == *= ]] && compopt -o nospace\n{_BASH_END}'
"""Bash would put a blank behind `key=`, which the value has to follow."""
_ZSH_HEAD = "#compdef toolwright\n"
_ZSH_HEAD_LOADED = (
    f"{_ZSH_HEAD}(( $+functions[compdef] )) || {{ autoload -Uz compinit; compinit }}\n"
)
"""A ~/.zshrc that does not load zsh's completion has no `compdef`, which the script ends with."""


@click.command("completion")
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
def completion_command(shell: str) -> None:
    """Print a shell's completion script. For bash: `eval "$(toolwright completion bash)"` in
    ~/.bashrc; for zsh the same in ~/.zshrc; for fish:
    `toolwright completion fish > ~/.config/fish/completions/toolwright.fish`.
    """
    kind = get_completion_class(shell)
    assert kind is not None
    script = kind(toolwright, {}, "toolwright", COMPLETING).source()
    click.echo(script.replace(_BASH_END, _BASH_END_OPEN).replace(_ZSH_HEAD, _ZSH_HEAD_LOADED))
