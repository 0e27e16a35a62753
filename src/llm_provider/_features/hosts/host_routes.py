"""The rows of the user's own hosts, from `Client(hosts=)` and from the TOML file of `LLM_PROVIDER_HOSTS`.

Imported where there is one. A row is like the rows of `ROUTES`, and nothing else knows the dialects.
"""

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from ..._core.errors import RequestError, cite
from ..._core.json_values import JSONMapping
from ..._core.requests.routing import ROUTES, UNPUBLISHED, Route
from ..._core.runtime.files import read_text
from .host import Dialect, Host, suggest_near

VARIABLE = "LLM_PROVIDER_HOSTS"
"""The environment variable that names a file of hosts."""

# What each server reads of a request for an answer. A parameter that it ignores would be dropped silently.
_DIALECTS: Mapping[Dialect, JSONMapping] = {
    # The server decides.
    "openai": {"like_openai": True, "stores_answers": True},
    # `ChatCompletionRequest` of vllm/entrypoints/openai and of sglang/srt/entrypoints/openai.
    "vllm": {"stores_answers": True, "scores": "vllm"},
    "sglang": {"stores_answers": True, "scores": "sglang"},
    # tools/server/server-common.cpp: "Only one completion choice is allowed".
    "llama.cpp": {"lacks": {"n"}, "scores": "llama.cpp"},
    # `ChatCompletionRequest` of ollama's openai/openai.go.
    "ollama": {"lacks": {"n", "tool_choice", "top_k", "logit_bias", "parallel_tool_calls"}},
    # "Supported payload parameters" of LM Studio's developer documentation.
    "lm_studio": {
        "lacks": {"n", "logprobs", "top_logprobs", "parallel_tool_calls"}, "stores_answers": True
    },
    # `ChatRequest` in router/src/lib.rs of text-generation-inference marks `n` and `logit_bias` as unused and
    # has no others.
    "tgi": {
        "lacks": {"n", "logit_bias", "top_k", "parallel_tool_calls", "reasoning_effort"}, "scores": "tgi"
    },
}  # fmt: skip

_SECRET = re.compile(r"(?i).*(key|secret|password|authorization)s?|(access_|api_|auth_)?tokens?")


def read_hosts(hosts: object = ()) -> dict[str, Route]:
    """The rows of a client's hosts by name, then the rows of the file that `LLM_PROVIDER_HOSTS` names.

    A `RequestError` has the path of a file that is not valid, and the line where it is not TOML.
    """
    if not isinstance(hosts, (list, tuple)) or not all(isinstance(host, Host) for host in hosts):
        raise RequestError(
            "hosts must be a list of hosts: write hosts=[Host('lab', 'http://10.0.0.7:8000/v1')], not "
            f"{cite(hosts)}"
        )
    names = [host.name for host in hosts]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise RequestError(f"hosts has two hosts with the name {twice!r}: give one of them another name")
    routes = []
    if path := os.environ.get(VARIABLE, "").strip():
        where, tables = _read_tables(Path(path).expanduser())
        routes = [_read_table(where, name, table) for name, table in tables.items()]
    return {route.provider: route for route in (*routes, *map(_make_route, hosts))}


def _read_tables(path: Path) -> tuple[str, JSONMapping]:
    """What a file is called in messages, and its tables."""
    where = f"{VARIABLE}: {str(path)!r}"
    try:
        text = read_text(path)
        return where, tomllib.loads(text)
    except FileNotFoundError:
        problem = "is not there: write the path of the file"
    except OSError as error:
        problem = f"cannot be read: {error.strerror}"
    except UnicodeDecodeError:
        problem = "is not UTF-8 text: save it as UTF-8"
    except RecursionError:
        problem = "is nested too deep"
    except ValueError as error:
        # Also a number of thousands of digits. The message may quote the text, which may hold a key.
        line = re.search(r"at line (\d+)", str(error))
        problem = f"is not TOML: correct line {line[1] if line else len(text.splitlines())}"
    raise RequestError(f"{where} {problem}")


def _read_table(where: str, name: str, table: Any) -> Route:
    """The row of one table. Values of unknown names are not quoted."""
    if not isinstance(table, dict):
        raise RequestError(
            f"{where} has {cite(name)} outside a table: write [lab] above the settings of a host"
        )
    known = [column.name for column in fields(Host) if column.name != "name"]
    for column in table:
        if column not in known:
            problem = f"{suggest_near(column, known)}; it takes {', '.join(known)}"
            if _SECRET.fullmatch(column):
                problem = (
                    ", and a key does not belong into a file that is shared: write key_variable, the name of "
                    "an environment variable that holds it"
                )
            raise RequestError(f"{where}: [{name}] has {cite(column)}{problem}")
    if "urls" not in table:
        raise RequestError(f"{where}: [{name}] has no urls: write urls = ['http://10.0.0.7:8000/v1']")
    try:
        return _make_route(Host(name, **table))
    except RequestError as error:
        raise RequestError(f"{where}: {error.message}") from None


def _make_route(host: Host) -> Route:
    owners = (row.provider for row in ROUTES.values() if host.name in (row.provider, *row.other_names))
    owner = next(owners, None)
    if owner is not None:
        raise RequestError(
            f"host {host.name!r}: this is a name of the provider {owner!r}; choose another one"
        )
    columns = dict(_DIALECTS[host.dialect])
    lacks = frozenset(columns.pop("lacks", ()))
    return Route(
        host.name,
        host.urls[0] if len(host.urls) == 1 else None,
        key_variables=() if host.key_variable is None else (host.key_variable,),
        key_required=host.key_variable is not None,
        default_effort=True,
        parts=frozenset({"media in results", "thinking"}),
        embedding_limits=UNPUBLISHED._replace(**host.embeddings),
        options=frozenset(host.accepts),
        lacks=lacks.difference(host.accepts).union(host.lacks),
        host=host,
        **columns,
    )
