"""The options of a call, which `ask` and `map` share, and the parameters that they stand for."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click

from ..._core.errors import RequestError
from ..._core.json_values import JSONMapping, JSONObject
from ..._core.runtime.files import read_text
from .parsing import parse_json_object, prices_option

_NOT_HERE = {
    "api_key": "an API key does not belong on a command line; put it into the environment",
    "extra_headers": "headers may hold keys, and do not belong on a command line; call it from Python",
    "progress": "a terminal shows the progress, and a pipe does not",
    "rows": "the rows are those of the file",
}
"""Parameters that `--param` does not take, and what to do."""

FunctionT = TypeVar("FunctionT", bound=Callable[..., object])


def _parse_parameter(value: str) -> tuple[str, object]:
    """The name and the value of a parameter that is given as NAME=JSON."""
    name, equals, text = value.partition("=")
    name = name.strip().replace("-", "_")
    if not equals:
        raise click.BadParameter("expected NAME=JSON, such as top_p=0.9")
    if name in _NOT_HERE:
        raise click.BadParameter(f"{name}: {_NOT_HERE[name]}")
    from ..._core.requests.parameters import Parameters

    if name not in Parameters.__annotations__:
        from ..foreign.parameters import describe_unexpected

        raise click.BadParameter(describe_unexpected("call", name, Parameters.__annotations__))
    try:
        return name, json.loads(text)
    except (ValueError, RecursionError):
        quoted = json.dumps(text, ensure_ascii=False)
        raise click.BadParameter(
            f"the value of {name} is not JSON; for a text write --param '{name}={quoted}'"
        ) from None


_OPTIONS: dict[str, JSONObject] = {
    "--system": {"metavar": "TEXT", "help": "the system prompt"},
    "--max-tokens": {
        "metavar": "N", "type": int, "help": "the longest answer, in tokens, reasoning included",
    },
    "--temperature": {"metavar": "T", "type": float, "help": "randomness of the answer; 0 is the least"},
    "--reasoning-effort": {"metavar": "LEVEL", "help": "none, minimal, low, medium, high, xhigh or max"},
    "--schema": {
        "metavar": "FILE|JSON", "help": "a JSON schema, or its file: the answer is JSON that matches it",
    },
    "--seed": {"metavar": "N", "type": int, "help": "a number that makes answers more repeatable"},
    "--stop": {"metavar": "TEXT", "multiple": True, "help": "end the answer before this text; repeatable"},
    "--fallback": {
        "metavar": "MODEL", "multiple": True,
        "help": "ask this model if the one before does not answer; repeatable",
    },
    "--timeout": {"metavar": "SECONDS", "type": float, "help": "for one attempt (default 600)"},
    "--base-url": {"metavar": "URL", "help": "the server to ask instead of the provider's own"},
    "--extra-body": {
        "metavar": "JSON", "type": parse_json_object, "help": "an object of fields for this provider only",
    },
    "--param": {
        "metavar": "NAME=JSON", "type": _parse_parameter, "multiple": True,
        "help": "any other parameter of `call`, such as top_p=0.9; repeatable",
    },
}  # fmt: skip


def call_options(function: FunctionT) -> FunctionT:
    for name, settings in reversed(_OPTIONS.items()):
        function = click.option(name, **settings)(function)
    return prices_option(function)


def parameters_of(options: JSONMapping) -> JSONObject:
    """The parameters of a call by the options of a command line, without those that were not given."""
    parameters: JSONObject = {}
    for name, value in options.items():
        if name not in ("param", "schema") and value is not None and value != ():
            parameters[name] = list(value) if isinstance(value, tuple) else value
    for name, value in options.get("param") or ():
        if name in parameters:
            raise RequestError(f"{name} is given twice: leave out one of its options")
        parameters[name] = value
    if options.get("schema") is not None:
        parameters["response_format"] = read_schema(options["schema"])
    if parameters.get("temperature") == 0:
        # As programs write it: the text of the number is a part of the cache key.
        parameters["temperature"] = 0
    return parameters


def read_schema(text: str) -> JSONObject:
    """The JSON schema that an option gives as JSON or by the name of its file."""
    where = "--schema"
    if not text.lstrip().startswith("{"):
        where = f"--schema {text}"
        try:
            text = read_text(Path(text).expanduser())
        except UnicodeDecodeError:
            raise RequestError(f"{where}: the file is not UTF-8 text") from None
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise RequestError(f"{where}: the file cannot be read: {reason}") from None
    try:
        schema = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RequestError(f"{where} is not JSON: {error}") from None
    if not isinstance(schema, dict):
        raise RequestError(f"{where} must be a JSON object, not {type(schema).__name__}")
    if schema.get("type") in ("json_object", "json_schema"):
        # Forms of `response_format`, which the call checks.
        return schema
    from ..._core.schemas.json_schema import find_problem, is_schema

    problem = find_problem(schema)
    if problem is None and not is_schema(schema):
        problem = 'write one such as {"type": "object", "properties": {"city": {"type": "string"}}}'
    if problem is not None:
        raise RequestError(f"{where} is not a valid JSON schema: {problem}")
    return schema
