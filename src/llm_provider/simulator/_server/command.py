"""``python -m llm_provider.simulator``: the server in the foreground."""

from __future__ import annotations

import argparse
import errno
import json
import sys
import tempfile
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

from .._addresses import environment
from .._records.ledger import Ledger
from .._records.prices import SHIPPED
from .._settings import Settings
from .._simulator import INSTALL

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]


def main(argv: Sequence[str] | None = None, hosts: Sequence[str] = ()) -> int:
    """Run the simulator until Ctrl-C, then print its counts.

    Args:
        argv: the arguments; default those of the process.
        hosts: OpenAI-compatible hosts whose environment variables `llm-provider simulator` prints too.

    Returns:
        0 after Ctrl-C or SIGTERM, 1 if it could not start, 2 for invalid arguments.
    """
    arguments = _make_parser(
        "llm-provider simulator" if hosts else "python -m llm_provider.simulator"
    ).parse_args(argv)
    names = {field.name for field in fields(Settings)}
    try:
        given = {name: value for name, value in vars(arguments).items() if name in names}
        # A person wants to see the bill. A program that does not ask for it starts sooner.
        settings = Settings(**({"prices": SHIPPED} if arguments.parent is None else {}) | given)
    except (TypeError, ValueError) as problem:
        print(f"simulator: {problem}", file=sys.stderr)
        return 2
    try:
        from .process import serve
        from .state import State
    except ImportError as problem:
        print(f"simulator: {problem}; the simulator needs its extra: {INSTALL}", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory(prefix="llm-simulator-") as directory:
        try:
            certificate = None
            if arguments.tls:
                from .certificate import write_certificate

                certificate = write_certificate(Path(directory))
            state = State(settings)

            def ready(port: int) -> None:
                _announce(arguments, port, None if certificate is None else certificate[0], hosts)

            serve(
                state,
                host=arguments.host,
                port=arguments.port,
                certificate=certificate,
                punctual=arguments.punctual,
                parent=arguments.parent,
                ready=ready,
            )
        except (OSError, ImportError) as problem:
            in_use = isinstance(problem, OSError) and problem.errno == errno.EADDRINUSE
            remedy = f" {arguments.port}: choose another --port, or 0 for any that is free" if in_use else ""
            print(f"simulator: {problem}{remedy}", file=sys.stderr)
            return 1
    if arguments.parent is None:
        print(f"\n# {_summarize(Ledger.from_json(state.ledger.to_json()))}")
    return 0


def _make_parser(program: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=program,
        usage="%(prog)s [OPTIONS]",
        description="A loopback server that speaks the wire formats of OpenAI, Anthropic and Gemini.",
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default %(default)s)")
    parser.add_argument(
        "--port", type=int, default=8080, help="port to listen on, 0 for any (default %(default)s)"
    )
    parser.add_argument(
        "--tls", action="store_true", help="HTTPS with HTTP/2 and a certificate created for this run"
    )
    parser.add_argument(
        "--punctual",
        action="store_true",
        help="wait to the microsecond, not in whole milliseconds as asyncio does",
    )
    parser.add_argument("--parent", type=int, help=argparse.SUPPRESS)
    hints = get_type_hints(Settings)
    for field in fields(Settings):
        flag, text = "--" + field.name.replace("_", "-"), field.metadata["help"].replace("%", "%%")
        kind = hints[field.name]
        kind = kind if isinstance(kind, type) else kind.__args__[0]
        form: dict[str, Any] = {"type": kind, "metavar": kind.__name__.upper()}
        if kind is bool:
            form = {"action": argparse.BooleanOptionalAction}
        parser.add_argument(flag, default=argparse.SUPPRESS, help=text, **form)
    return parser


def _announce(
    arguments: argparse.Namespace, port: int, certificate: Path | None, hosts: Sequence[str]
) -> None:
    """Print the address: one line of JSON for a parent process, else lines to paste into a shell."""
    if arguments.parent is not None:
        ready = {"port": port, "certificate": None if certificate is None else str(certificate)}
        print(json.dumps(ready), flush=True)
        return
    host = f"[{arguments.host}]" if ":" in arguments.host else arguments.host
    root = f"{'http' if certificate is None else 'https'}://{host}:{port}"
    print(f"# The simulator is listening at {root} (Ctrl-C ends it).\n")
    for name, value in environment(root, certificate, hosts).items():
        print(f"export {name}={value}")
    sys.stdout.flush()


def _summarize(ledger: Ledger) -> str:
    names = ("requests", "answered", "rate_limited", "connections", "disconnects")
    counts = ", ".join(f"{getattr(ledger, name)} {name.replace('_', ' ')}" for name in names)
    return f"{counts}, " + ("no price of a model" if ledger.billed is None else f"${ledger.billed} billed")
