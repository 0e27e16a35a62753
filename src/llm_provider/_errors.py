"""Every error that leaves the library.

    LLMError
    ├── RequestError                       the request cannot be served; sending it again does not help
    │   ├── UnknownModelError              no route for the name; the message suggests near ones
    │   ├── MissingAPIKeyError             no key in the arguments or the environment
    │   ├── MissingDependencyError         the route's SDK is an extra that is not installed
    │   ├── UnsupportedParameterError      the route cannot honour a parameter; nothing was sent
    │   ├── BadRequestError                the provider refused the request (400, 413, 422)
    │   ├── NotFoundError                  the provider knows no such model or path (404)
    │   ├── UnknownPriceError              a budget cannot be kept: the most the call may cost is not known
    │   ├── CacheMissError                 nothing is stored, and cache="only" forbids asking
    │   └── ContextWindowExceededError     the conversation does not fit
    ├── ProviderError                      the provider or the way to it failed
    │   ├── AuthenticationError            401: the key is wrong
    │   ├── PermissionDeniedError          403: the key may not do this
    │   ├── RateLimitError                 429: too fast; retried
    │   ├── QuotaExceededError             402 or 429: no money or no quota left; final
    │   ├── OverloadedError                503, 529: the provider is full; retried
    │   ├── InternalServerError            5xx, 408 and 409: retried
    │   ├── APITimeoutError                no answer in time; retried
    │   ├── APIConnectionError             no connection, or it broke; retried
    │   └── APIResponseValidationError     an answer that is not complete or not valid; retried once
    ├── OutputError                        a valid answer that cannot be used as asked
    │   ├── RefusalError                   the model refused, or a filter stopped it
    │   ├── LengthFinishReasonError        the answer was cut at its token limit
    │   ├── ModelDriftError                another model answered than before
    │   └── JSONSchemaValidationError      the answer does not fit the schema
    ├── BudgetExceededError                the budget has too little left for the call; nothing was sent
    └── BatchError                         calls of a batch failed; carries every result

The names are those of the openai and anthropic SDKs and of litellm, where these have one.

Each pickles, and none holds a key, a header or an object of an SDK.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from decimal import Decimal

Phase: TypeAlias = Literal["connect", "first_byte", "idle", "total", "deadline"]
"""What a call was waiting for when its time was over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedAttempt:
    """One request of a call that did not end in an answer.

    `error` names the class of its error, such as "RateLimitError". `status` is the HTTP status where there
    was an answer. `waited` is how many seconds the call waited before it, for a slot, a Retry-After or a
    back-off, `seconds` how long it took itself. `maybe_billed` tells whether the provider may have charged
    for it.
    """

    error: str
    status: int | None = None
    waited: float = 0.0
    seconds: float = 0.0
    maybe_billed: bool = False


class LLMError(Exception):
    """The root of the tree.

    Attributes:
        provider: The route's name, such as "openai"; None before one is chosen.
        model: The model as the user named it.
        status: The HTTP status, where there was an answer.
        code: The provider's own word for the failure, such as "insufficient_quota".
        request_id: The provider's id of the request, for its support.
        attempts: Requests that were sent for this call; 0 if none was.
        retryable: Whether sending the same request later may succeed.
        retry_after: Seconds the provider asked to wait, if it did.
        maybe_billed: Whether the provider may have charged for this call.
        failures: Each request that was sent and failed, the last one included.

    >>> try:
    ...     raise RateLimitError("slow down", provider="openai", status=429, retry_after=2.0)
    ... except LLMError as error:
    ...     print(error.retryable, error.retry_after, error)
    True 2.0 slow down [openai, HTTP 429]
    """

    retryable: bool = False
    maybe_billed: bool = False
    failures: tuple[FailedAttempt, ...] = ()

    def __init__(
        self,
        message: str,
        *,
        provider: str | None = None,
        model: str | None = None,
        status: int | None = None,
        code: str | None = None,
        request_id: str | None = None,
        attempts: int = 0,
        retry_after: float | None = None,
        retryable: bool | None = None,
        maybe_billed: bool | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.provider = provider
        self.model = model
        self.status = status
        self.code = code
        self.request_id = request_id
        self.attempts = attempts
        self.retry_after = retry_after
        if retryable is not None:
            self.retryable = retryable
        if maybe_billed is not None:
            self.maybe_billed = maybe_billed

    def __str__(self) -> str:
        facts = [fact for fact in (self.provider, self.model) if fact]
        if self.status is not None:
            facts.append(f"HTTP {self.status}")
        if self.request_id:
            facts.append(f"request {self.request_id}")
        if self.attempts > 1:
            facts.append(f"{self.attempts} attempts")
        return f"{self.message} [{', '.join(facts)}]" if facts else self.message

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.__dict__.copy())


def _rebuild(kind: type[LLMError], state: dict[str, Any]) -> LLMError:
    error = kind.__new__(kind)
    Exception.__init__(error, state["message"])
    error.__dict__.update(state)
    return error


def shown(value: object) -> str:
    """A user's value for a message: cut where it is long, and whatever its `repr` does.

    >>> shown([1, 2])
    '[1, 2]'
    """
    try:
        text = repr(value)
    except Exception:
        # The value is the user's, and so is what its repr raises.
        return f"a value of type {type(value).__name__}"
    return text if len(text) <= 80 else f"{text[:77]}..."


class RequestError(LLMError, ValueError):
    """The request cannot be served as it is."""


class UnknownModelError(RequestError):
    """No route serves this model name."""


class MissingAPIKeyError(RequestError):
    """The provider wants a key and none was found."""


class MissingDependencyError(RequestError):
    """The route needs a package that is not installed; the message holds the command."""


class UnsupportedParameterError(RequestError):
    """The route cannot honour a parameter.

    `parameter` names it; the message names the model and what to do instead.
    """

    def __init__(self, message: str, *, parameter: str, **facts: Any) -> None:
        super().__init__(message, **facts)
        self.parameter = parameter


class BadRequestError(RequestError):
    """The provider refused the request as malformed."""


class NotFoundError(RequestError):
    """The provider knows no such model or path."""


class UnknownPriceError(RequestError):
    """There is a budget, and what the call may cost at most is not known."""


class CacheMissError(RequestError):
    """No answer is stored, and `cache="only"` sends nothing.

    `key` is the one that was looked for.
    """

    def __init__(self, message: str, *, key: str, **facts: Any) -> None:
        super().__init__(message, **facts)
        self.key = key


class ContextWindowExceededError(RequestError):
    """The conversation is longer than the model's context."""


class ProviderError(LLMError):
    """The provider, or the way to it, failed."""


class AuthenticationError(ProviderError):
    """The provider does not accept the key."""


class PermissionDeniedError(ProviderError):
    """The key may not use this model or feature."""


class RateLimitError(ProviderError):
    """Too many requests or tokens for now."""

    retryable = True


class QuotaExceededError(ProviderError):
    """The account has no money or no quota left; waiting seconds does not help."""


class OverloadedError(ProviderError):
    """The provider is out of capacity for now."""

    retryable = True


class InternalServerError(ProviderError):
    """The provider failed inside."""

    retryable = True


class APITimeoutError(ProviderError):
    """No complete answer in time; the provider may still have worked, and billed.

    `phase` tells which limit was passed: "connect", "first_byte", "idle" or "total" of `Timeouts`, or the
    call's "deadline". `limit` is how many seconds that allows. Both are None where it was the provider that
    gave up.
    """

    retryable = True
    maybe_billed = True

    def __init__(
        self,
        message: str,
        *,
        phase: Phase | None = None,
        limit: float | None = None,
        **facts: Any,
    ) -> None:
        super().__init__(message, **facts)
        self.phase: Phase | None = phase
        self.limit = limit


class APIConnectionError(ProviderError):
    """The connection could not be made, or broke."""

    retryable = True


class APIResponseValidationError(ProviderError):
    """The answer is malformed or incomplete."""

    retryable = True
    maybe_billed = True


class OutputError(LLMError):
    """A valid answer that cannot be used as asked; it was billed."""

    maybe_billed = True


class RefusalError(OutputError):
    """The model refused, or a content filter stopped it."""


class LengthFinishReasonError(OutputError):
    """The answer ended at its token limit."""


class ModelDriftError(OutputError):
    """Another snapshot of the model answered than before, and `strict_model` was asked for.

    The answer is paid for and stored. `served` is the model that answered, `served_before` the one before.
    """

    def __init__(self, message: str, *, served: str, served_before: str, **facts: Any) -> None:
        super().__init__(message, **facts)
        self.served = served
        self.served_before = served_before


class JSONSchemaValidationError(OutputError):
    """The answer is not JSON, or does not match the schema asked for."""


class BudgetExceededError(LLMError):
    """What is left of a budget is less than the request may cost at most, so it was not sent.

    In USD: `budget` is the limit, `spent` what was spent of it by then, `needed` the request's worst case.
    """

    def __init__(
        self, message: str, *, budget: Decimal, spent: Decimal, needed: Decimal, **facts: Any
    ) -> None:
        super().__init__(message, **facts)
        self.budget = budget
        self.spent = spent
        self.needed = needed


class BatchError(LLMError):
    """At least one call of a batch failed, and `on_error="raise"` was asked for.

    Raised after every other call has finished and is stored. `results` holds one entry per input, in
    order: a `Response`, or the `LLMError` of the call that failed. `__cause__` is the first failure.
    """

    def __init__(self, message: str, *, results: Sequence[Any], **facts: Any) -> None:
        super().__init__(message, **facts)
        self.results = list(results)

    @property
    def errors(self) -> dict[int, LLMError]:
        """The failures by input position."""
        return {index: result for index, result in enumerate(self.results) if isinstance(result, LLMError)}
