"""`Host`: an OpenAI-compatible server of the user's own, from `Client(hosts=)` or a TOML file.

Imported where there is one. A host becomes a row like those of `ROUTES`, and nothing else knows its dialect.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, NoReturn, TypeAlias, get_args

from .._errors import RequestError, cite
from .._json_values import JSONMapping, plain_number
from .._money.price_rows import PRICE_COLUMNS, PriceRow, check_row, mapping_lines
from .base_url import check_base_url
from .routing import ROUTES, UNPUBLISHED, EmbeddingLimits, Route

VARIABLE = "LLM_PROVIDER_HOSTS"
"""The environment variable that names a file of hosts."""

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

# What each server reads of a request for an answer. A parameter that it ignores would be dropped silently.
_DIALECTS: Mapping[Dialect, JSONMapping] = {
    # The server decides.
    "openai": {"like_openai": True, "stores_answers": True},
    # `ChatCompletionRequest` of vllm/entrypoints/openai and of sglang/srt/entrypoints/openai.
    "vllm": {"stores_answers": True},
    "sglang": {"stores_answers": True},
    # tools/server: "Only one completion choice is allowed".
    "llama.cpp": {"lacks": {"n"}},
    # `ChatCompletionRequest` of ollama's openai/openai.go.
    "ollama": {"lacks": {"n", "tool_choice", "top_k", "logit_bias", "parallel_tool_calls"}},
    # "Supported payload parameters" of LM Studio's developer documentation.
    "lm_studio": {
        "lacks": {"n", "logprobs", "top_logprobs", "parallel_tool_calls"}, "stores_answers": True
    },
    # `ChatRequest` of text-generation-inference marks `n` and `logit_bias` as unused and has no others.
    "tgi": {"lacks": {"n", "logit_bias", "top_k", "parallel_tool_calls", "reasoning_effort"}},
}  # fmt: skip

_NAME = re.compile(r"[a-z][a-z0-9_-]*")
_VARIABLE_NAME = re.compile(r"[A-Z_][A-Z0-9_]*")
_SECRET = re.compile(r"(?i).*(key|secret|password|authorization)s?|(access_|api_|auth_)?tokens?")


@dataclass(frozen=True, slots=True)
class Host:
    """A server of your own that speaks OpenAI's format. `name/model` reaches its models.

    Args:
        name: The prefix of its models: lower-case letters, digits, "_" and "-". Cache keys hold this name and
            no address, so answers stay when the server moves, and equal names mean equal servers.
        url: The base URL, such as "http://10.0.0.7:8000/v1".
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
        RequestError: a value is not valid, or the name is that of a provider.

    >>> lab = Host("lab", "http://10.0.0.7:8000/v1", "vllm", prices={"*": {"input": 0.1, "output": 0.4}})
    >>> lab.url, lab.dialect
    ('http://10.0.0.7:8000/v1', 'vllm')
    """

    name: str
    url: str
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
        owner = next((row.provider for row in ROUTES.values() if self.name in row.other_names), self.name)
        if owner in ROUTES:
            self._refuse(f"the name belongs to the provider {owner!r}: choose another one")
        object.__setattr__(self, "url", self._check_url())
        self._check_choice("dialect", self.dialect, get_args(Dialect))
        if self.tokenizer is not None:
            self._check_choice("tokenizer", self.tokenizer, get_args(Tokenizer))
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
        self._check_figures("embeddings", self.embeddings, EmbeddingLimits._fields, whole=True)
        list(self.price_rows())

    def _check_url(self) -> str:
        if not isinstance(self.url, str):
            self._refuse(f"url must be one address, such as 'http://10.0.0.7:8000/v1', not {cite(self.url)}")
        try:
            return check_base_url(self.url)
        except RequestError as error:
            self._refuse(error.message.replace("base_url", "url"))

    def _check_choice(self, what: str, value: object, choices: Sequence[str]) -> None:
        if value not in choices:
            self._refuse(
                f"{what} must be one of {', '.join(choices)}, not {cite(value)}{_near(value, choices)}"
            )

    def _check_parameters(self, what: str, names: object, known: Collection[str]) -> None:
        if isinstance(names, str) or not isinstance(names, Collection):
            self._refuse(f"{what} must be a list of parameters, such as ['top_k'], not {cite(names)}")
        for name in names:
            if name not in known:
                known_names = ", ".join(sorted(known))
                self._refuse(f"{what} has {cite(name)}{_near(name, known)}; it takes {known_names}")

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
            if column not in columns:
                self._refuse(
                    f"{what} has {cite(column)}{_near(column, columns)}; it takes {', '.join(columns)}"
                )
            number = figure if isinstance(figure, Decimal) else plain_number(figure)
            if number is None or (whole and (not isinstance(number, int) or number < 1)):
                kind = "a whole number from 1 on" if whole else "a number of USD, 0 or more"
                self._refuse(f"{what}[{column!r}] must be {kind}, not {cite(figure)}")

    def _refuse(self, problem: str) -> NoReturn:
        raise RequestError(f"host {self.name!r}: {problem}")

    def make_route(self) -> Route:
        """The row of this host."""
        columns = dict(_DIALECTS[self.dialect])
        lacks = columns.pop("lacks", frozenset())
        return Route(
            self.name,
            self.url,
            key_variables=() if self.key_variable is None else (self.key_variable,),
            key_required=self.key_variable is not None,
            default_effort=True,
            parts=frozenset({"media in results", "thinking"}),
            embedding_limits=UNPUBLISHED._replace(**self.embeddings),
            options=frozenset(self.accepts),
            lacks=frozenset(lacks).difference(self.accepts).union(self.lacks),
            host=self,
            **columns,
        )

    def price_rows(self) -> Iterator[PriceRow]:
        """The rows of this host in the price table. A host without prices has one whose prices are blank.

        Raises:
            RequestError: a price, or the name of a model, is not one that the table can have.
        """
        table = self.prices or {"*": {}}
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


def _near(name: object, known: Collection[str]) -> str:
    import difflib

    near = difflib.get_close_matches(str(name).lower(), known, n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def read_hosts(hosts: object = ()) -> dict[str, Route]:
    """The rows of a client's hosts by name, with those of the file that `LLM_PROVIDER_HOSTS` names.

    A host of the client comes before one of the file with its name.

    Raises:
        RequestError: something else than a list of hosts was given, a name occurs twice, or the file is not
            valid. The message has its path, and its line where it is not TOML.
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
    path = os.environ.get(VARIABLE, "").strip()
    both = [*(_read_file(Path(path).expanduser()) if path else ()), *hosts]
    return {host.name: host.make_route() for host in both}


def _read_file(path: Path) -> Iterator[Host]:
    where = f"{VARIABLE}: {str(path)!r}"
    try:
        text = path.read_text(encoding="utf-8-sig")
        tables = tomllib.loads(text)
    except FileNotFoundError:
        raise RequestError(f"{where} is not there: write the path of the file") from None
    except OSError as error:
        raise RequestError(f"{where} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise RequestError(f"{where} is not UTF-8 text: save it as UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        # The message of the error may quote the text, which may hold a key.
        line = re.search(r"at line (\d+)", str(error))
        raise RequestError(
            f"{where} is not TOML: correct line {line[1] if line else len(text.splitlines())}"
        ) from None
    for name, table in tables.items():
        yield _read_table(where, name, table)


def _read_table(where: str, name: str, table: Any) -> Host:
    """The host of one table. Values of unknown names are not quoted."""
    if not isinstance(table, dict):
        raise RequestError(
            f"{where} has {cite(name)} outside a table: write [lab] above the settings of a host"
        )
    known = [column.name for column in fields(Host) if column.name != "name"]
    for column in table:
        if column not in known:
            problem = f"has {cite(column)}{_near(column, known)}; it takes {', '.join(known)}"
            if _SECRET.fullmatch(column):
                problem = (
                    f"has {cite(column)}, and a key does not belong into a file that is shared: write "
                    "key_variable, the name of an environment variable that holds it"
                )
            raise RequestError(f"{where}: [{name}] {problem}")
    if "url" not in table:
        raise RequestError(f"{where}: [{name}] has no url: write url = 'http://10.0.0.7:8000/v1'")
    try:
        return Host(name, **table)
    except RequestError as error:
        raise RequestError(f"{where}: {error.message}") from None
