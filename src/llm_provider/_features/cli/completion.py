"""The command `llm-provider completion`: prints the script that completes commands in a shell."""

import click
from click.shell_completion import get_completion_class

from .commands import COMPLETION_VARIABLE, program
from .output import PROGRAM
from .parsing import Command

_EPILOG = f"""\
Commands, options and the names of models are completed by Tab. Put one of these lines into the file that your
shell reads when it starts:

  eval "$({PROGRAM} completion bash)"       # ~/.bashrc
  eval "$({PROGRAM} completion zsh)"        # ~/.zshrc, after compinit
  {PROGRAM} completion fish | source        # ~/.config/fish/config.fish
"""


@click.command(cls=Command, epilog=_EPILOG)
@click.argument("shell", metavar="bash|zsh|fish", type=click.Choice(["bash", "zsh", "fish"]))
def run_completion(shell: str) -> None:
    """Print the script that completes commands in a shell."""
    kind = get_completion_class(shell)
    assert kind is not None
    # `source` of bash would run bash to learn its version.
    script = kind(program, {}, PROGRAM, COMPLETION_VARIABLE)
    print(script.source_template % script.source_vars())
