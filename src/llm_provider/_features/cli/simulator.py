"""The command `llm-provider simulator`, which parses its options itself."""

import click

from ..._core.requests.routing import COMPATIBLE_HOSTS
from .parsing import Command


@click.command(
    cls=Command,
    add_help_option=False,
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def run_simulator(arguments: tuple[str, ...]) -> int:
    """Run a local server that speaks the providers' wire formats."""
    from ...simulator._server.command import main as simulate

    return simulate(arguments, COMPATIBLE_HOSTS)
