"""The settings of the simulator, for all providers or for one, at the start or while it runs."""

from __future__ import annotations

import functools
import math
from dataclasses import asdict, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, get_type_hints

from ._behaviour.deviations import DEVIATIONS

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Settings"]

LIMIT_SCOPES = ("provider", "model", "key")
BATCH_COUNTS = ("all", "none", "stale")


def _option(default: Any, text: str) -> Any:
    return field(default=default, metadata={"help": text})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The behaviour of the simulated providers. Every field can differ from provider to provider.

    Raises:
        TypeError: a value of the wrong type.
        ValueError: a negative or non-finite number, or an unknown word.

    >>> Settings(latency=0.05, requests_per_minute=600).burst_requests
    60.0
    """

    latency: float = _option(0.0, "seconds before the first byte of an answer")
    latency_jitter: float = _option(0.0, "up to this many seconds more, from a seeded generator")
    chunk_interval: float = _option(0.0, "seconds between two text chunks of a stream")
    chunks: int | None = _option(None, "text chunks per stream; default: one per word")
    answer: str = _option(
        "auto", '"auto" solves sums, chooses options, echoes the rest; "echo"; or a fixed text'
    )
    output_tokens: int | None = _option(None, "length of every answer in tokens, filled with distinct words")
    error_rate: float = _option(0.0, "fraction of sums that are answered wrongly; the same sums in every run")
    noise: float = _option(0.0, "fraction of answers that differ at random from the usual answer")
    changed: float = _option(0.0, "fraction of prompts whose usual answer differs, as from a changed model")
    border: float = _option(0.0, "fraction of prompts whose first word varies at random, by two words")
    border_shift: float = _option(0.0, "shift of the probabilities of these words, as from a changed model")
    max_concurrent: int | None = _option(None, "number of requests in progress above which 429 is answered")
    served_at_once: int | None = _option(
        None, "requests that are served at once; further ones wait for their turn, as in vLLM"
    )
    prompt_speed: float | None = _option(
        None,
        "tokens of a prompt that are read a second, before the latency; those that are kept take no time",
    )
    prefix_tokens: int = _option(
        0,
        "tokens of prompts that a server keeps and reports as cached, least recently used out first, as vLLM",
    )
    requests_per_minute: float | None = _option(None, "requests a minute above which 429 is answered")
    tokens_per_minute: float | None = _option(
        None, "tokens a minute (input and output) above which 429 is answered"
    )
    burst: float | None = _option(
        None, "capacity of the request bucket; default: the requests of six seconds"
    )
    token_burst: float | None = _option(
        None, "capacity of the token bucket; default: the tokens of six seconds"
    )
    limits_per: str = _option("provider", 'the scope of a limit: "provider", "model" or "key"')
    key_limits: str = _option(
        "", "with limits_per=key, the requests a minute of single keys: sk-a=60,sk-b=600"
    )
    rate_limit_headers: bool = _option(True, "send each provider's rate-limit headers, with true values")
    require_key: str | None = _option(None, "answer 401 to every other API key")
    reject_parameters: bool = _option(
        True, "answer 400 where the real provider does, e.g. to a temperature for a current Claude"
    )
    context_window: int | None = _option(
        None, "input tokens above which the provider's context-length error is sent"
    )
    cached_tokens: int = _option(0, "input tokens reported as read from the prompt cache")
    cache_write_tokens: int = _option(0, "input tokens reported as written to the prompt cache (not Gemini)")
    prompt_cache: bool = _option(
        False, "model the prompt caches of OpenAI, Anthropic and Gemini, and report their tokens"
    )
    reasoning_tokens: int | None = _option(
        None, "reasoning tokens of every answer; default: those of the reasoning text, if requested"
    )
    web_searches: int = _option(0, "searches of the provider that every answer reports, in its own form")
    reported_cost: float | None = _option(None, "cost in USD that every reply of Chat Completions reports")
    count_usage: bool = _option(True, "report the tokens of an answer; else zeros, as some hosts do")
    only_listed_models: bool = _option(False, "answer 404 to models that are not in the list of models")
    deviations: str = _option(
        "",
        "ways in which every answer differs from the SDKs' types, as those of some real servers do, by name",
    )
    snapshot_suffix: str = _option("", "appended to the served model's name: --snapshot-suffix=-2026-10-21")
    fingerprints: str = _option(
        "fp_simulator", "system fingerprints of answers, separated by commas, in turn"
    )
    upstreams: int = _option(
        0, "hosts, up to 9, behind each model of OpenRouter and Hugging Face; unpinned requests take turns"
    )
    billing_clock: float = _option(0.0, "seconds that the clock of the reports of usage is ahead")
    cost_decimals: int | None = _option(None, "decimals of USD in the reports of costs")
    prices: str | None = _option(
        None, 'path of a prices.csv for the bill, or "shipped" for that of the library (default in a shell)'
    )
    batch_seconds: float = _option(3600.0, "seconds of the provider's time that a batch takes")
    batch_clock: float = _option(
        86_400.0, "seconds of the provider's time that pass in a second while batches are worked off"
    )
    batch_errored: float = _option(0.0, "fraction of a batch's rows that fail the first time they are sent")
    batch_expired: float = _option(0.0, "fraction of a batch's rows that expire the first time they are sent")
    batch_unordered: bool = _option(True, "give the results of a batch in another order than its rows")
    batch_results_seconds: float | None = _option(
        None, "seconds of the provider's time after which the results of a batch are gone"
    )
    batch_results_late: int = _option(
        0, "how often an ended batch is shown without the place of its results, as real ones are for a moment"
    )
    batch_errors_late: int = _option(0, "the same for the file of failed rows of OpenAI and compatible hosts")
    batch_counts: str = _option("all", 'counts of a batch: "all", "none", or "stale", those of its first row')
    batch_limit: int | None = _option(None, "batches in progress above which a submission is answered 429")
    file_seconds: float = _option(0.0, "seconds for which Gemini processes an uploaded video")
    seed: int = _option(0, "seed of the latency jitter")

    def __post_init__(self) -> None:
        for name, kind in _list_types().items():
            _check(name, getattr(self, name), kind)
        for name in (
            "error_rate",
            "noise",
            "changed",
            "border",
            "border_shift",
            "batch_errored",
            "batch_expired",
        ):
            if not getattr(self, name) <= 1:
                raise ValueError(f"{name} is a fraction from 0 to 1, not {getattr(self, name)!r}")
        if not self.batch_clock:
            raise ValueError("batch_clock is above 0")
        for name, words in (("limits_per", LIMIT_SCOPES), ("batch_counts", BATCH_COUNTS)):
            if getattr(self, name) not in words:
                raise ValueError(f"{name} is one of {', '.join(words)}, not {getattr(self, name)!r}")
        for name in self.list_deviations():
            if name not in DEVIATIONS:
                raise ValueError(f"deviations are some of {', '.join(DEVIATIONS)}, not {name!r}")
        self._read_key_limits()

    def list_deviations(self) -> list[str]:
        """The names in `deviations`, which commas separate."""
        return [name.strip() for name in self.deviations.split(",") if name.strip()]

    @property
    def burst_requests(self) -> float:
        """Capacity of the request bucket; infinite without a request limit."""
        return _find_capacity(self.burst, self.requests_per_minute)

    @property
    def burst_tokens(self) -> float:
        """Capacity of the token bucket; infinite without a token limit."""
        return _find_capacity(self.token_burst, self.tokens_per_minute)

    def select_key(self, key: str) -> Settings:
        """The settings for the requests of one API key."""
        limit = self._read_key_limits().get(key)
        return self if limit is None else replace(self, requests_per_minute=limit)

    def _read_key_limits(self) -> dict[str, float]:
        limits = {}
        for limit in filter(None, self.key_limits.split(",")):
            key, _, number = limit.strip().rpartition("=")
            if not key or not number.isascii() or not number.isdigit():
                raise ValueError(f"key_limits is a list of key=number, not {self.key_limits!r}")
            limits[key] = float(number)
        return limits

    def copy_with(self, changes: Mapping[str, Any]) -> Settings:
        """A copy with some values replaced.

        Raises:
            TypeError: a setting does not exist, or a value has the wrong type.
            ValueError: as for the class.
        """
        known = {field.name for field in fields(self)}
        for name in changes:
            if name not in known:
                raise TypeError(f"the simulator has no setting {name!r}; it has {', '.join(sorted(known))}")
        return replace(self, **changes)

    def to_json(self) -> dict[str, Any]:
        """All values, as JSON types."""
        return asdict(self)


def _find_capacity(burst: float | None, per_minute: float | None) -> float:
    if burst is not None:
        return max(1.0, burst)
    return math.inf if per_minute is None else max(1.0, per_minute / 10)


@functools.cache
def _list_types() -> dict[str, Any]:
    return get_type_hints(Settings)


def _check(name: str, value: Any, expected: Any) -> None:
    optional = expected not in (str, bool, int, float)
    if optional and value is None:
        return
    kind = expected if not optional else expected.__args__[0]
    if kind is float:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise TypeError(f"{name} is a number, not {value!r}")
    elif kind is int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f"{name} is a whole number, not {value!r}")
    elif not isinstance(value, kind):
        raise TypeError(f"{name} is a {kind.__name__}, not {value!r}")
    if kind in (int, float) and name not in ("seed", "billing_clock") and not (0 <= value < math.inf):
        raise ValueError(f"{name} is finite and not negative, not {value!r}")
