"""The values a user receives: `Response` and its parts. All are frozen and slotted."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, TypeAlias

from ._errors import (
    FailedAttempt,
    JSONSchemaValidationError,
    LengthFinishReasonError,
    LLMError,
    RefusalError,
)
from ._runtime.frozen import quickly_made

FinishReason: TypeAlias = Literal["stop", "length", "tool_calls", "content_filter", "refusal"]
"""Why a model stopped, in one vocabulary for every provider."""

Message: TypeAlias = Mapping[str, Any]
"""One OpenAI-style chat message: `{"role": ..., "content": ...}`."""

Prompt: TypeAlias = str | Sequence[Message]
"""What a call takes: one user message as a `str`, or a whole conversation."""


@quickly_made
@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Token counts of one call, with OpenTelemetry's GenAI meaning on every provider.

    Totals are inclusive: `input_tokens` contains what was read from and written to the provider's
    prompt cache, `output_tokens` contains reasoning. All values are tokens, but for `web_searches`. Zero is
    also what a provider does not tell.

    >>> Usage(input_tokens=10, output_tokens=5) + Usage(input_tokens=1, reasoning_output_tokens=0)
    Usage(input_tokens=11, output_tokens=5)
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_input_tokens: int = 0
    cache_write_input_tokens: int = 0
    cache_write_1h_input_tokens: int = 0
    """The part of `cache_write_input_tokens` that was written to live for one hour."""
    reasoning_output_tokens: int = 0
    audio_input_tokens: int = 0
    """Parts of `input_tokens`, with what of them was read from the cache; images likewise."""
    cache_read_audio_input_tokens: int = 0
    """The part of `audio_input_tokens` that is a part of `cache_read_input_tokens` too."""
    image_input_tokens: int = 0
    audio_output_tokens: int = 0
    image_output_tokens: int = 0
    """Parts of `output_tokens`, as audio is."""
    web_searches: int = 0
    """Searches that the provider made for the model; no tokens, but billed."""

    @property
    def total_tokens(self) -> int:
        """Input and output together."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Usage) -> Usage:
        if not isinstance(other, Usage):
            return NotImplemented
        return Usage(**{name: getattr(self, name) + getattr(other, name) for name in _USAGE_FIELDS})

    def __repr__(self) -> str:
        shown = (f"{name}={getattr(self, name)}" for name in _USAGE_FIELDS if getattr(self, name))
        return f"Usage({', '.join(shown)})"


_USAGE_FIELDS = tuple(entry.name for entry in fields(Usage))


@quickly_made
@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Where the time of one call went, in seconds of a monotonic clock.

    `queue` is waiting before and between attempts: for a slot, for a provider's Retry-After, for a
    back-off. `first_token` runs from sending the last attempt to its first delta and is None unless the
    answer was streamed. `total` is what the caller waited. `overhead` is the rest: `total` less `queue`
    and less the time spent inside the provider's SDK. `attempts` counts requests sent; 0 is a cache hit.
    """

    queue: float = 0.0
    first_token: float | None = None
    total: float = 0.0
    attempts: int = 0
    overhead: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A function the model asks for; `arguments` is the JSON text it wrote.

    >>> ToolCall(id="call_1", name="weather", arguments='{"city": "Bern"}').parsed_arguments
    {'city': 'Bern'}
    """

    id: str
    name: str
    arguments: str

    @property
    def parsed_arguments(self) -> Any:
        """`arguments` as Python values.

        Raises:
            JSONSchemaValidationError: the model wrote something that is not JSON.
        """
        try:
            return json.loads(self.arguments)
        except (ValueError, RecursionError):
            raise JSONSchemaValidationError(
                f"the arguments of tool call {self.name!r} are not valid JSON"
            ) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallDelta:
    """A fragment of a tool call under way: `index` tells which call, `arguments` is the next piece."""

    index: int
    id: str = ""
    name: str = ""
    arguments: str = ""


@quickly_made
@dataclass(frozen=True, slots=True, kw_only=True)
class Delta:
    """What one step of a stream added. `str(delta)` is its text."""

    text: str = ""
    reasoning: str = ""
    tool_calls: tuple[ToolCallDelta, ...] = ()

    def __str__(self) -> str:
        return self.text

    def __bool__(self) -> bool:
        return bool(self.text or self.reasoning or self.tool_calls)


Step: TypeAlias = Delta | str
"""What one step of a stream added, on its way to who reads the stream. Text alone, as nearly always, stays a
text until then: the garbage collector went through all the objects that waited, again and again, which took
a fifth of the CPU of a long stream. Empty where nothing was added."""


def delta_of(step: Step) -> Delta:
    """A step as its user sees it.

    >>> delta_of("Hello").text
    'Hello'
    """
    return Delta(text=step) if isinstance(step, str) else step


@quickly_made
@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One sample of an answer. `message` is ready to be appended to the conversation."""

    text: str = ""
    reasoning: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: FinishReason = "stop"
    message: Message = field(default_factory=dict)
    logprobs: Any = None


@quickly_made
@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """A complete answer: the same value whether it was streamed, awaited or read from the cache.

    `cost` is what this call really cost in USD: 0 for a cache hit, None where the price is unknown.
    `model` is the name the provider says it served. `failures` are the requests that were sent for this call
    before one succeeded. `raw` is the provider's answer as it came.
    """

    choices: tuple[Choice, ...]
    usage: Usage
    model: str
    provider: str
    id: str | None = None
    cost: float | None = None
    cached: bool = False
    timing: Timing = Timing()
    failures: tuple[FailedAttempt, ...] = field(default=(), repr=False)
    body: bytes = field(default=b"null", repr=False)
    response_format: Any = field(default=None, repr=False, compare=False)

    @property
    def text(self) -> str:
        """The text of the first sample; empty where the model only called tools."""
        return self.choices[0].text

    @property
    def texts(self) -> list[str]:
        """The texts of all `n` samples."""
        return [choice.text for choice in self.choices]

    @property
    def reasoning(self) -> str:
        """The reasoning the provider shows for the first sample; empty where it shows none."""
        return self.choices[0].reasoning

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The functions that the first sample asks for."""
        return self.choices[0].tool_calls

    @property
    def finish_reason(self) -> FinishReason:
        """Why the first sample ended."""
        return self.choices[0].finish_reason

    @property
    def message(self) -> Message:
        """The first sample as an assistant message, signatures included, for the next turn."""
        return self.choices[0].message

    @property
    def logprobs(self) -> Any:
        """Log probabilities of the first sample in the provider's form, or None."""
        return self.choices[0].logprobs

    @property
    def raw(self) -> Any:
        """The provider's answer in its own wire format, as Python values.

        A call whose samples were sent as separate requests has the list of their answers.
        """
        return json.loads(self.body)

    @property
    def parsed(self) -> Any:
        """The text as JSON, or as an instance of the pydantic model given as `response_format`.

        None where no JSON was asked for.

        Raises:
            RefusalError: the model refused, or a filter stopped it.
            LengthFinishReasonError: the answer ended at its token limit.
            JSONSchemaValidationError: the text is not JSON or does not validate.
        """
        if self.response_format is None or self.response_format == {"type": "text"}:
            return None
        where: dict[str, Any] = {"provider": self.provider, "model": self.model}
        if self.finish_reason in ("refusal", "content_filter"):
            raise RefusalError(f"there is nothing to parse: finish_reason is {self.finish_reason!r}", **where)
        if self.finish_reason == "length":
            raise LengthFinishReasonError("the answer was cut at its token limit; raise max_tokens", **where)
        validate = getattr(self.response_format, "model_validate_json", None) or json.loads
        try:
            return validate(self.text)
        except (ValueError, RecursionError) as error:
            raise JSONSchemaValidationError(
                f"the answer does not match response_format: {error}", **where
            ) from None

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        text = self.text if len(self.text) <= 80 else f"{self.text[:77]}..."
        return (
            f"Response({text!r}, model={self.model!r}, finish_reason={self.finish_reason!r}, "
            f"tokens={self.usage.input_tokens}+{self.usage.output_tokens}, {self._cost_text()})"
        )

    def _repr_html_(self) -> str:
        import html

        facts = (
            f"{self.provider} · {self.model} · {self.finish_reason} · "
            f"{self.usage.input_tokens} + {self.usage.output_tokens} tokens · "
            f"{self._cost_text()} · {self.timing.total:.2f} s"
        )
        return (
            f'<div><div style="white-space: pre-wrap">{html.escape(self.text)}</div>'
            f"<small>{html.escape(facts)}</small></div>"
        )

    def _cost_text(self) -> str:
        if self.cached:
            return "cached"
        return "cost unknown" if self.cost is None else f"${self.cost:.6f}"


Result: TypeAlias = Response | LLMError
"""What a batch gives for one input."""
