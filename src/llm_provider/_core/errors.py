"""The errors that the library raises. docs/errors.md has the tree, and what to do about each.

Names are the openai and anthropic SDKs' and litellm's, where these have one. Every error can be
pickled. No error holds an API key, a header or an object of an SDK.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from . import doors
from .hints import as_missing_answer, missing_attribute
from .json_values import JSONMapping, JSONObject, check_fields, json_value
from .json_values import cite as cite  # noqa: PLC0414  # mypy takes it for a re-export by this form alone
from .words import escape_controls

if TYPE_CHECKING:
    from decimal import Decimal
    from typing import Never

Phase: TypeAlias = Literal["connect", "first_byte", "idle", "total", "deadline"]
"""The phase of a call in which its time limit passed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedAttempt:
    """One request of a call that failed.

    `error` names the class of its error, such as "RateLimitError". `status` is the HTTP status of an answer.
    `waited` are the seconds before the request, for a slot, a Retry-After or a back-off, `seconds` its own.
    `maybe_billed` says whether the provider may have charged for it.
    """

    error: str
    status: int | None = None
    waited: float = 0.0
    seconds: float = 0.0
    maybe_billed: bool = False


class LLMError(Exception):
    """The base class of all errors.

    In a batch, an error has the place of a response. The attributes that only a response has, such as `text`
    and `parsed`, raise the error, as an `AttributeError` too. So `hasattr(error, "text")` is false.

    Attributes:
        provider: The route's name, such as "openai"; None before a route is found.
        model: The model as the user named it.
        status: The HTTP status of an answer.
        code: The provider's code for the failure, such as "insufficient_quota".
        request_id: The provider's id of the request.
        attempts: The number of requests that were sent for this call, at most. Refused connections count too.
        retryable: Whether the same request may succeed later.
        retry_after: The wait in seconds that the provider asked for; None if it gave none.
        maybe_billed: Whether the provider may have charged for this call.
        failures: The requests that failed, the last one included.
        usage: The `Usage` that the provider reported for the requests of this call, or None.
        samples: The answered samples of a call with `n` above 1. The same call asks for the rest.
        passed_over: The models of `fallback` that failed before: a tuple of `PassedOver`.
        cached: False, as no answer came from the cache.
        metadata, prompt, score_values: As in a `Response`; the last score is the failed call's.

    >>> try:
    ...     raise RateLimitError("slow down", provider="openai", status=429, retry_after=2.0)
    ... except LLMError as error:
    ...     print(error.retryable, error.retry_after, error)
    True 2.0 slow down [openai, HTTP 429]
    """

    retryable: bool = False
    maybe_billed: bool = False
    failures: tuple[FailedAttempt, ...] = ()
    usage: Any = None
    cost_bounds: Any = None
    samples: tuple[Any, ...] = ()
    passed_over: tuple[Any, ...] = ()
    cached = False
    metadata: Any = None
    prompt: Any = None
    row_label: Any = None
    score_values: tuple[Any, ...] = ()
    _cost: float | None = None

    if TYPE_CHECKING:
        text: Never
        texts: Never
        choices: Never
        reasoning: Never
        tool_calls: Never
        finish_reason: Never
        parsed: Never
        logprobs: Never
        raw: Never
        body: Never
        id: Never
        timing: Never
        cost_source: Never
        cost_unknown: Never
        price: Never
        response_format: Never

    def __init__(
        self, message: str, *, provider: str | None = None, model: str | None = None,
        status: int | None = None, code: str | None = None, request_id: str | None = None,
        attempts: int = 0, retry_after: float | None = None, retryable: bool | None = None,
        maybe_billed: bool | None = None,
    ) -> None:  # fmt: skip
        super().__init__(message)
        self.message, self.provider, self.model, self.status = message, provider, model, status
        self.code, self.request_id, self.attempts, self.retry_after = code, request_id, attempts, retry_after
        for name, flag in (("retryable", retryable), ("maybe_billed", maybe_billed)):
            if flag is not None:
                setattr(self, name, flag)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name in _OF_RESPONSES:
                raise as_missing_answer(self) from self.__cause__
            raise missing_attribute(self, name)

        def __getitem__(self, name: Any) -> Any:
            # As of an answer in its place, such as decisions[0]["NAME"].
            raise self.with_traceback(None)

    @property
    def cost(self) -> float | None:
        """USD that all requests of the call cost; if one cost is unknown None, with two `cost_bounds`."""
        return self._cost if self.maybe_billed else 0.0

    @cost.setter
    def cost(self, usd: float | None) -> None:
        self._cost = usd

    def to_dict(self) -> JSONObject:
        """The error as JSON-ready values. `error` is the name of its class.

        >>> fields = RateLimitError("slow down", status=429, retry_after=2.0).to_dict()
        >>> fields["error"], fields["message"], fields["retry_after"], fields["cost"]
        ('RateLimitError', 'slow down', 2.0, 0.0)
        """
        own = [name for name in vars(self) if not name.startswith("_") and name not in _CONTEXT]
        fields = {name: json_value(getattr(self, name)) for name in (*_CONTEXT, *own)}
        return {"error": type(self).__name__, **fields}

    @staticmethod
    def from_dict(fields: JSONMapping) -> LLMError:
        """The error that `to_dict` wrote.

        Raises:
            RequestError: it is not the dict of an error.

        >>> LLMError.from_dict({"error": "RateLimitError", "message": "slow down", "status": 429})
        RateLimitError('slow down')
        """
        kind, problem = globals().get(str(fields.get("error"))), "this is not the dict of an error: "
        if not (isinstance(kind, type) and issubclass(kind, LLMError)) or "message" not in fields:
            raise RequestError(problem + cite(dict(fields)))
        read: dict[str, Any] = {**dict.fromkeys(_CONTEXT[1:6]), "attempts": 0, "retry_after": None}
        try:
            for name, value in check_fields(fields).items():
                if name != "error" and (name not in _OF_RESPONSES or name in kind.__annotations__):
                    read[name] = READERS[name](value) if name in READERS and value is not None else value
        except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
            raise RequestError(f"{problem}{cite(dict(fields))} ({error!r})") from None
        return _rebuild(kind, read | {"_cost": read.pop("cost", None)})

    def __str__(self) -> str:
        status = self.status is not None and f"HTTP {self.status}"
        request = self.request_id and f"request {self.request_id}"
        details = [detail for detail in (self.provider, self.model, status, request) if detail]
        if self.attempts > 1:
            at_most = any(failure.error == "APIConnectionError" for failure in self.failures)
            details.append(f"{'at most ' if at_most else ''}{self.attempts} attempts")
        return escape_controls(f"{self.message} [{', '.join(details)}]" if details else self.message)

    def _repr_html_(self) -> str:
        return doors.html.error_view(self)

    def _render_traceback_(self) -> list[str]:
        """What IPython shows of this error when it ends a cell."""
        return doors.client_view.render_traceback(self)

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.__dict__.copy())


_OF_RESPONSES = frozenset({
    "origins", "cache_keys", "dropped", "prompt_token_ids", "served_by", "token_ids", "text", "texts",
    "choices", "reasoning", "tool_calls", "finish_reason", "parsed", "all_parsed", "parsed_from",
    "logprobs", "raw", "id", "timing", "cost_source", "cost_unknown", "price", "response_format",
    "schema_in_prompt", "citations", "images", "audio", "server_tool_calls", "messages", "rounds",
    "prompt_cache_miss", "stored_price", "stored_usages", "tool_rounds", "tool_results"})  # fmt: skip
"""The attributes that a `Response` has and an error does not, but for `body`, which openai's errors have."""

_CONTEXT = (
    "message", "provider", "model", "status", "code", "request_id", "attempts", "retryable", "retry_after",
    "maybe_billed", "failures", "cost", "usage", "cached", "metadata", "prompt",
)  # fmt: skip


def _decimal(text: str) -> Decimal:
    from decimal import Decimal

    return Decimal(text)


READERS: dict[str, Callable[[Any], Any]] = {
    "failures": lambda failures: tuple(FailedAttempt(**check_fields(failure)) for failure in failures),
    **dict.fromkeys(("budget", "spent", "needed"), _decimal),
    "candidates": tuple,
}
"""Turns the JSON of a field into its value. `types`, which imports this module, adds its own classes."""


def _rebuild(kind: type[LLMError], state: JSONObject) -> LLMError:
    error = kind.__new__(kind)
    Exception.__init__(error, state["message"])
    error.__dict__.update(state)
    return error


class RequestError(LLMError, ValueError):
    """The request cannot be served as it is. Repeating it does not help."""


class UnknownModelError(RequestError):
    """No route serves this model name."""


class MissingAPIKeyError(RequestError):
    """The provider requires an API key, and none was found."""


class MissingDependencyError(RequestError):
    """The route needs a package that is not installed, or cannot be loaded. The message says what to do."""


class UnsupportedParameterError(RequestError):
    """The route does not support the `parameter`. The message names the model and the remedy."""

    def __init__(self, message: str, *, parameter: str, **context: Any) -> None:
        super().__init__(message, **context)
        self.parameter = parameter


class BadRequestError(RequestError):
    """The provider refused the request as invalid."""


class NotFoundError(RequestError):
    """The provider knows no such model or path."""


class UnknownPriceError(RequestError):
    """A budget applies, and the most USD or tokens that the call can take are unknown."""


class CacheMissError(RequestError):
    """No answer is stored under `key`, the cache key of the call, and `cache="only"` sends nothing."""

    def __init__(self, message: str, *, key: str, **context: Any) -> None:
        super().__init__(message, **context)
        self.key = key


class ContextWindowExceededError(RequestError):
    """The conversation is longer than the model's context."""


class PendingBatchError(RequestError):
    """The input is in a batch under way, `batch`, and `in_batch="refuse"` was set or results do not come."""

    def __init__(self, message: str, *, batch: str, **context: Any) -> None:
        super().__init__(message, **context)
        self.batch = batch


class ProviderError(LLMError):
    """The provider or the connection to it failed."""


class AuthenticationError(ProviderError):
    """The provider does not accept the API key."""


class PermissionDeniedError(ProviderError):
    """The API key has no access to this model or feature."""


class RateLimitError(ProviderError):
    """Too many requests or tokens were sent for now."""

    retryable = True


class QuotaExceededError(ProviderError):
    """The account has no money or quota left. A short wait does not help."""


class OverloadedError(ProviderError):
    """The provider is out of capacity for now."""

    retryable = True


class InternalServerError(ProviderError):
    """The provider failed internally."""

    retryable = True


class APITimeoutError(ProviderError):
    """No complete answer arrived in time. The provider may still have answered and charged for it.

    `phase` is the limit that passed: "connect", "first_byte", "idle" or "total" of `Timeouts`, or the call's
    "deadline". `limit` is its length in seconds. Both are None where the provider itself reported a timeout.
    """

    retryable = True
    maybe_billed = True

    def __init__(
        self, message: str, *, phase: Phase | None = None, limit: float | None = None, **context: Any
    ) -> None:
        super().__init__(message, **context)
        self.phase: Phase | None = phase
        self.limit = limit


class APIConnectionError(ProviderError):
    """The connection could not be made, or broke."""

    retryable = True


class APIResponseValidationError(ProviderError):
    """The answer is incomplete or malformed.

    `raw` is the provider's reply if it came whole, and None if the answer is no JSON or was cut.
    """

    retryable = True
    maybe_billed = True
    raw: Any = None


class ScoreCheckError(APIResponseValidationError):
    """A server's log-probabilities of a text cannot be right, so no score is made of them.

    `check` is the name of the check that failed, such as "count" or "known answer": docs/decide.md lists
    them, with what to do. The reply may have been billed. Nothing of it is stored, and it is not asked for
    again.
    """

    retryable = False

    def __init__(self, message: str, *, check: str, **context: Any) -> None:
        super().__init__(message, **context)
        self.check = check


class UncertainBatchError(ProviderError):
    """A batch may have been submitted, and its provider cannot tell whether it was.

    Nothing is submitted until you decide, because it might be paid twice: docs/batches.md. `batch` is its
    name in the journal, and `candidates` are the provider's batches that may be it.
    """

    maybe_billed = True

    def __init__(self, message: str, *, batch: str, candidates: Sequence[str] = (), **context: Any) -> None:
        super().__init__(message, **context)
        self.batch = batch
        self.candidates = tuple(candidates)


class EvidenceError(LLMError):
    """A file of evidence is damaged, or was changed. The message names the first thing that differs."""


class OutputError(LLMError):
    """A valid answer that cannot be used as requested. It was billed."""

    maybe_billed = True


class RefusalError(OutputError):
    """The model refused, or a content filter stopped it."""


class LengthFinishReasonError(OutputError):
    """The answer was cut at its token limit."""


class ModelDriftError(OutputError):
    """Another snapshot of the model answered than before, and `strict_model` was set.

    The answer was billed and is stored. `served` is the model that answered, `served_before` the last one.
    """

    def __init__(self, message: str, *, served: str, served_before: str, **context: Any) -> None:
        super().__init__(message, **context)
        self.served, self.served_before = served, served_before


class JSONSchemaValidationError(OutputError):
    """The answer is not JSON, or does not match the requested schema."""


class SchemaMismatchError(JSONSchemaValidationError):
    """The answer is not JSON, or does not match `response_format`, also after it was asked for again.

    `text` is the last answer. `validation_error` names each place that does not match, one in a line. `usage`
    (a `Usage`) and `cost` (USD) are those of all requests of the call; None where they are not known.
    """

    text: str  # type: ignore[assignment]  # other errors raise themselves in its place

    def __init__(self, message: str, *, text: str, validation_error: str, **context: Any) -> None:
        self.usage, self.cost = context.pop("usage", None), context.pop("cost", None)
        super().__init__(message, **context)
        self.text = text
        self.validation_error = validation_error


class ToolArgumentsError(JSONSchemaValidationError):
    """The arguments of a tool call are not valid JSON, or do not match the types of the tool.

    `tool_call_id`, `tool_name` and `arguments` are those of the call. `tool_message()` answers the call, so
    that the model can correct it.

    >>> error = ToolArgumentsError("city: missing", tool_call_id="1", tool_name="weather", arguments="{}")
    >>> error.tool_message()
    {'role': 'tool', 'tool_call_id': '1', 'content': 'Error: city: missing', 'is_error': True}
    """

    def __init__(
        self, message: str, *, tool_call_id: str, tool_name: str, arguments: str, **context: Any
    ) -> None:
        super().__init__(message, **context)
        self.tool_call_id, self.tool_name, self.arguments = tool_call_id, tool_name, arguments

    def tool_message(self) -> JSONObject:
        """The tool message that tells the model of the error."""
        content = f"Error: {self.message}"
        return {"role": "tool", "tool_call_id": self.tool_call_id, "content": content, "is_error": True}


class ToolRoundsExceededError(OutputError):
    """The model still calls tools after `max_tool_rounds` rounds. Its last calls were not run.

    `response` is the last answer. Its `tool_calls` were not run, and its `messages` lead up to them.
    """

    def __init__(self, message: str, *, response: Any, **context: Any) -> None:
        super().__init__(message, **context)
        self.response = response


class BudgetExceededError(LLMError):
    """The request may cost more than is left of a budget, so it was not sent.

    Amounts, in `unit` ("USD" or "tokens"): the limit `budget`, what was `spent`, the worst case `needed`.
    """

    unit: str = "USD"

    def __init__(
        self, message: str, *, budget: Decimal, spent: Decimal, needed: Decimal, **context: Any
    ) -> None:
        super().__init__(message, **context)
        self.budget, self.spent, self.needed = budget, spent, needed


class TooManyErrorsError(LLMError):
    """`max_errors` rows of the batch have `failed`, so this row was not asked. The same batch asks it."""

    failed = max_errors = 0


class BatchError(LLMError):
    """At least one call of a batch failed, and `on_error="raise"` was set.

    It is raised after every other call has finished and is stored. `results` holds one entry per input, in
    order: a `Response`, or the `LLMError` of the failed call. `__cause__` is the first failure.
    """

    def __init__(self, message: str, *, results: Sequence[Any], **context: Any) -> None:
        super().__init__(message, **context)
        self.results: list[Any] = results if isinstance(results, list) else list(results)

    @property
    def errors(self) -> dict[int, LLMError]:
        """The errors by position of their input."""
        return {index: result for index, result in enumerate(self.results) if isinstance(result, LLMError)}
