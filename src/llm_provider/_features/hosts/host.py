"""`Host`: OpenAI-compatible servers of the user's own. `host_routes` makes rows of hosts."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Literal, NoReturn, TypeAlias, get_args

from ..._core.errors import RequestError, cite
from ..._core.json_values import plain_number
from ..._core.money.price_rows import PRICE_COLUMNS, PriceRow, check_row, mapping_lines
from ..._core.requests.base_url import check_base_url

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
