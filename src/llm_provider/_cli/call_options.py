"""The options of a call, which `ask` and `map` share, and the parameters that they stand for."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from .._errors import RequestError
from .parsing import json_object, options

_NOT_HERE = {
    "api_key": "an API key does not belong on a command line; put it into the environment",
    "extra_headers": "headers may hold keys, and do not belong on a command line; call it from Python",
    "progress": "a terminal shows the progress, and a pipe does not",
    "rows": "the rows are those of the file",
}
"""Parameters that `--param` does not take, and what to do."""


def _parameters(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> list[tuple[str, Any]]:
    """The names and values of parameters that are given as NAME=JSON.

    Raises:
        click.BadParameter: `call` has no such parameter, or a value is not JSON.
    """
    return [_parameter(value) for value in values]


def _parameter(value: str) -> tuple[str, Any]:
    name, equals, text = value.partition("=")
    name = name.strip().replace("-", "_")
    if not equals:
        raise click.BadParameter("expected NAME=JSON, such as top_p=0.9")
    if name in _NOT_HERE:
        raise click.BadParameter(f"{name}: {_NOT_HERE[name]}")
    from .._requests.parameters import Parameters

    if name not in Parameters.__annotations__:
        from .._requests.foreign_names import unexpected

        raise click.BadParameter(unexpected("call", name, Parameters.__annotations__))
    try:
        return name, json.loads(text)
    except (ValueError, RecursionError):
        quoted = json.dumps(text, ensure_ascii=False)
        raise click.BadParameter(
            f"the value of {name} is not JSON; for a text write --param '{name}={quoted}'"
        ) from None


_OPTIONS: tuple[Callable[[Any], Any], ...] = (
    click.option("--system", metavar="TEXT", help="the system prompt"),
    click.option(
        "--max-tokens", metavar="N", type=int, help="the longest answer, in tokens, reasoning included"
    ),
    click.option("--temperature", metavar="T", type=float, help="randomness of the answer; 0 is the least"),
    click.option(
        "--reasoning-effort", metavar="LEVEL", help="none, minimal, low, medium, high, xhigh or max"
    ),
    click.option(
        "--schema",
        metavar="FILE|JSON",
        help="a JSON schema, or its file: the answer is JSON that matches it",
    ),
    click.option("--seed", metavar="N", type=int, help="a number that makes answers more repeatable"),
    click.option("--stop", metavar="TEXT", multiple=True, help="end the answer before this text; repeatable"),
    click.option("--timeout", metavar="SECONDS", type=float, help="for one attempt (default 600)"),
    click.option("--base-url", metavar="URL", help="the server to ask instead of the provider's own"),
    click.option(
        "--extra-body",
        metavar="JSON",
        callback=json_object,
        help="an object of fields for this provider only",
    ),
    click.option(
        "--param",
        "param",
        metavar="NAME=JSON",
        callback=_parameters,
        multiple=True,
        help="any other parameter of `call`, such as top_p=0.9; repeatable",
    ),
)

call_options = options(_OPTIONS)
"""Adds the options of a call to a command."""


def parameters_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of a call by the options of a command line. Those that were not given are left out.

    Raises:
        RequestError: a parameter was given twice, or the schema cannot be read.
    """
    found: dict[str, Any] = {}
    for name, value in given.items():
        if name not in ("param", "schema") and value is not None and value != ():
            found[name] = list(value) if name == "stop" else value
    for name, value in given.get("param") or ():
        if name in found:
            raise RequestError(f"{name} is given twice: leave out one of its options")
        found[name] = value
    if given.get("schema") is not None:
        found["response_format"] = schema(given["schema"])
    return found


def schema(text: str) -> dict[str, Any]:
    """The JSON schema that an option gives as JSON or by the name of its file.

    Raises:
        RequestError: it is not a JSON object, or the file cannot be read.
    """
    where = "--schema"
    if not text.lstrip().startswith("{"):
        where = f"--schema {text}"
        try:
            text = Path(text).expanduser().read_text(encoding="utf-8-sig")
        except UnicodeDecodeError:
            raise RequestError(f"{where}: the file is not UTF-8 text") from None
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise RequestError(f"{where}: the file cannot be read: {reason}") from None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RequestError(f"{where} is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise RequestError(f"{where} must be a JSON object, not {type(found).__name__}")
    return found
