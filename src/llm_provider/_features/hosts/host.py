"""`Host`: OpenAI-compatible servers of the user's own, and their rows, also from a TOML file.

A row is like the rows of `ROUTES`, and nothing else knows the dialects.
"""

import os
import re
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, NoReturn, TypeAlias, get_args

from ..._core.errors import RequestError, cite
from ..._core.json_values import JSONMapping, plain_number
from ..._core.money.price_rows import PRICE_COLUMNS, PriceRow, check_row, mapping_lines
from ..._core.requests.base_url import check_base_url
from ..._core.requests.routing import ROUTES, UNPUBLISHED, Route
from ..._core.runtime.files import read_text

Dialect: TypeAlias = Literal["openai", "vllm", "sglang", "llama.cpp", "ollama", "lm_studio", "tgi"]
"""The kind of a server."""

Tokenizer: TypeAlias = Literal[
    "o200k_base", "cl100k_base", "gemma", "tekken", "deepseek", "qwen", "llama", "qwen_3"
]
"""The vocabularies that estimates know."""

PARAMETERS = frozenset(
    {"max_tokens", "temperature", "top_p", "stop", "seed", "tools", "tool_choice", "response_format",
     "reasoning_effort", "endpoint", "logprobs", "top_logprobs", "top_k", "frequency_penalty",
     "presence_penalty", "logit_bias", "parallel_tool_calls", "user", "allowed_tools", "metadata",
     "modalities", "prompt_cache_key", "service_tier", "store", "verbosity"}
)  # fmt: skip
"""The parameters that Chat Completions can express."""

_LACKS_ONLY = frozenset({"n", "dimensions"})
"""Parameters that every dialect has unless it lacks them."""

_LIMITS = ("context_window", "max_output_tokens")
_EMBEDDING_LIMITS = ("texts", "tokens", "text_tokens")

_NAME = re.compile(r"[a-z][a-z0-9_-]*")
_VARIABLE_NAME = re.compile(r"[A-Z_][A-Z0-9_]*")


@dataclass(frozen=True, slots=True)
class Host:
    """A server of your own that speaks OpenAI's format, or several equal ones: `name/model` calls them.

    Args:
        name: The prefix of its models: lower-case letters, digits, "_" and "-". Cache keys hold this name and
            no address, so answers stay when the server moves, and equal names mean equal servers.
        urls: The base URL, such as "http://10.0.0.7:8000/v1", or a list of them for servers with the same
            models. Each has limits and outages of its own. A call goes to a server that has the beginning of
            its prompt, else to the least busy one, and after a failure to another.
        dialect: The kind of the server: "vllm", "sglang", "llama.cpp", "ollama", "lm_studio", "tgi", or
            "openai" for any other. It says which parameters the server reads. "openai" takes all of them.
        key_variable: The environment variable of its API key, which is then required. The key may also be in
            `Client(keys={name: ...})`. Without it, none is needed.
        accepts: Parameters that the server has and its dialect lacks.
        lacks: Parameters that the server does not have; a call with one is refused. Without `n`, samples are
            sent as separate calls.
        prices: USD by model, with the columns of `prices.csv`: per million tokens, and per thousand requests.
            "*" is every model without an entry. Without prices the cost is None, and a `PriceWarning` says so
            once.
        limits: The `context_window` and `max_output_tokens` by model, in tokens, for estimates and budgets.
            "*" is every other model.
        embeddings: How much one request for embeddings may hold: the number of `texts`, the `tokens` of all
            of them, and the tokens of one, `text_tokens`. Default 100 texts and 16,384 tokens.
        tokenizer: The vocabulary of its models, for estimates, where their names do not tell it.

    Raises:
        RequestError: a value is not valid.

    >>> lab = Host("lab", "http://10.0.0.7:8000/v1", "vllm", prices={"*": {"input": 0.1, "output": 0.4}})
    >>> lab.urls, lab.dialect
    (('http://10.0.0.7:8000/v1',), 'vllm')
    """

    name: str
    urls: str | Sequence[str]
    dialect: Dialect = "openai"
    key_variable: str | None = None
    accepts: Collection[str] = ()
    lacks: Collection[str] = ()
    prices: Mapping[str, Mapping[str, float | Decimal]] = field(default_factory=dict)
    limits: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    embeddings: Mapping[str, int] = field(default_factory=dict)
    tokenizer: Tokenizer | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or _NAME.fullmatch(self.name) is None:
            raise RequestError(
                "the name of a host must be lower-case letters, digits, '_' and '-', such as 'lab', not "
                f"{cite(self.name)}"
            )
        object.__setattr__(self, "urls", self._check_urls())
        self._check_name("dialect", self.dialect, get_args(Dialect))
        if self.tokenizer is not None:
            self._check_name("tokenizer", self.tokenizer, get_args(Tokenizer))
        key = self.key_variable
        if key is not None and (not isinstance(key, str) or _VARIABLE_NAME.fullmatch(key) is None):
            # Not quoted: it may be the key itself.
            self._refuse(
                "key_variable must be the name of an environment variable, such as 'LAB_API_KEY'; a key "
                f"goes into that variable, or into Client(keys={{{self.name!r}: ...}})"
            )
        self._check_parameters("accepts", self.accepts, PARAMETERS)
        self._check_parameters("lacks", self.lacks, PARAMETERS | _LACKS_ONLY)
        self._check_table("prices", self.prices, PRICE_COLUMNS)
        self._check_table("limits", self.limits, _LIMITS)
        self._check_figures("embeddings", self.embeddings, _EMBEDDING_LIMITS, whole=True)
        list(self.price_rows())

    def _check_urls(self) -> tuple[str, ...]:
        urls = [self.urls] if isinstance(self.urls, str) else self.urls
        if not isinstance(urls, (list, tuple)) or not urls or not all(isinstance(url, str) for url in urls):
            self._refuse(
                "urls must be an address, such as 'http://10.0.0.7:8000/v1', or a list of them, not "
                f"{cite(self.urls)}"
            )
        try:
            checked = tuple(map(check_base_url, urls))
        except RequestError as error:
            self._refuse(error.message.replace("base_url", "url"))
        twice = next((url for url in checked if checked.count(url) > 1), None)
        if twice is not None:
            self._refuse(f"urls has {twice!r} twice")
        return checked

    def _check_name(self, what: str, name: object, known: Sequence[str]) -> None:
        if name not in known:
            near = suggest_near(name, known)
            self._refuse(f"{what} must be one of {', '.join(known)}, not {cite(name)}{near}")

    def _check_parameters(self, what: str, names: object, known: Collection[str]) -> None:
        if isinstance(names, str) or not isinstance(names, Collection):
            self._refuse(f"{what} must be a list of parameters, such as ['top_k'], not {cite(names)}")
        for name in names:
            self._check_name(f"each of {what}", name, sorted(known))

    def _check_table(self, what: str, table: object, columns: Sequence[str]) -> None:
        if not isinstance(table, Mapping):
            self._refuse(
                f"{what} must be a dict by model, such as {{'*': {{{columns[0]!r}: 1}}}}, not {cite(table)}"
            )
        for model, figures in table.items():
            self._check_figures(f"{what}[{model!r}]", figures, columns, whole=what == "limits")

    def _check_figures(self, what: str, figures: object, columns: Sequence[str], *, whole: bool) -> None:
        if not isinstance(figures, Mapping):
            self._refuse(
                f"{what} must be a dict of numbers, such as {{{columns[0]!r}: 1}}, not {cite(figures)}"
            )
        for column, figure in figures.items():
            self._check_name(f"each name in {what}", column, columns)
            number = figure if isinstance(figure, Decimal) else plain_number(figure)
            if number is None or (whole and (not isinstance(number, int) or number < 1)):
                kind = "a whole number from 1 on" if whole else "a number of USD, 0 or more"
                self._refuse(f"{what}[{column!r}] must be {kind}, not {cite(figure)}")

    def _refuse(self, problem: str) -> NoReturn:
        raise RequestError(f"host {self.name!r}: {problem}")

    def price_rows(self) -> Iterator[PriceRow]:
        """The rows of this host in the price table. The prices of models without an entry are blank.

        Raises:
            RequestError: a price, or the name of a model, is not one that the table can have.
        """
        table = {"*": {}, **self.prices}
        rows = [
            {"provider": self.name, "model": model, "source": "host", **figures}
            for model, figures in table.items()
        ]
        for (_, cells), model in zip(mapping_lines(rows), table, strict=True):
            try:
                yield check_row(cells)
            except ValueError as error:
                self._refuse(f"prices[{model!r}]: {error}")

    def find_limits(self, model: str) -> Mapping[str, int]:
        """The `context_window` and `max_output_tokens` of a model; those that are not given are missing."""
        return self.limits.get(model, self.limits.get("*", {}))


def suggest_near(name: object, known: Collection[str]) -> str:
    """The end of a message about an unknown name: the known name that is like it, if there is one."""
    import difflib

    near = difflib.get_close_matches(str(name).lower(), known, n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


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
