"""The values that calls return: `Response`, `Embeddings` and their parts. All are frozen and slotted."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, overload

from ._errors import (
    READERS,
    FailedAttempt,
    LengthFinishReasonError,
    LLMError,
    MissingDependencyError,
    OutputError,
    RefusalError,
    RequestError,
    SchemaMismatchError,
    ToolArgumentsError,
    shown,
)
from ._json_values import json_value
from ._runtime.frozen import quickly_made

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    from ._schemas.reading import ParsedFrom, Reading

    T_co = TypeVar("T_co", covariant=True, default=Any)
else:
    # The default is for type checkers, and before Python 3.13 `typing` has none.
    from typing import TypeVar

    T_co = TypeVar("T_co", covariant=True)

FinishReason: TypeAlias = Literal["stop", "length", "tool_calls", "content_filter", "refusal"]
"""Why a model stopped, in one vocabulary for every provider."""

Message: TypeAlias = Mapping[str, Any]
"""One OpenAI-style chat message: `{"role": ..., "content": ...}`."""

CostSource: TypeAlias = Literal["reply", "prices", "litellm"]
"""Where a cost comes from: the reply itself, the price table, or litellm's price map."""

Prompt: TypeAlias = str | Sequence[Message]
"""The input of a call: one user message as a `str`, or a whole conversation."""


@quickly_made
@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Token counts of one call, defined for every provider as in OpenTelemetry's GenAI conventions.

    Totals are inclusive: `input_tokens` contains the tokens read from and written to the provider's prompt
    cache, `output_tokens` contains reasoning. All values are tokens, except `web_searches`. A count that the
    provider does not report is 0.

    >>> Usage(input_tokens=10, output_tokens=5) + Usage(input_tokens=1, reasoning_output_tokens=0)
    Usage(input_tokens=11, output_tokens=5)
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_input_tokens: int = 0
    cache_write_input_tokens: int = 0
    cache_write_1h_input_tokens: int = 0
    """The part of `cache_write_input_tokens` that the provider keeps for one hour."""
    reasoning_output_tokens: int = 0
    audio_input_tokens: int = 0
    """Audio and images are parts of `input_tokens`, including tokens read from the cache."""
    cache_read_audio_input_tokens: int = 0
    """The part of `audio_input_tokens` that was read from the cache."""
    image_input_tokens: int = 0
    audio_output_tokens: int = 0
    image_output_tokens: int = 0
    """Audio and images are parts of `output_tokens`."""
    web_searches: int = 0
    """Searches that the provider made for the model. They are billed by number."""

    @property
    def total_tokens(self) -> int:
        """The sum of input and output tokens."""
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
    """The durations of one call, in seconds of a monotonic clock.

    `queue` is the wait before and between attempts: for a slot, for a provider's Retry-After, for a back-off.
    `first_token` is the time from the start of the last attempt to its first delta; None unless the answer
    was streamed. `total` is the time that the caller waited. `overhead` is `total` without `queue` and
    without the time inside the provider's SDK. `attempts` is the number of requests sent; 0 for a cache hit.
    """

    queue: float = 0.0
    first_token: float | None = None
    total: float = 0.0
    attempts: int = 0
    overhead: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A call that the model requests. `arguments` is the JSON text that the model wrote.

    `tool` is the tool that is called if it was given as a Python function or a class, else None.
    `parsed_arguments` is then checked against its types: a dict of arguments for a function, an instance of
    the class for a pydantic model, a dataclass or a TypedDict.

    `type` is "function" for nearly every call. A call of OpenAI's custom tools has the type "custom", and its
    `arguments` are free text. OpenAI's other tools that the program runs have the type of their item, such as
    "shell_call", "apply_patch_call" or "mcp_approval_request". `arguments` is then the action as JSON.

    >>> ToolCall(id="call_1", name="weather", arguments='{"city": "Bern"}').parsed_arguments
    {'city': 'Bern'}
    """

    id: str
    name: str
    arguments: str
    type: str = "function"
    tool: Any = field(default=None, repr=False, compare=False)

    @property
    def parsed_arguments(self) -> Any:
        """`arguments` as Python values, checked against the types of `tool`.

        Raises:
            ToolArgumentsError: the text is not JSON, or does not match the types.
        """
        parse = getattr(self.tool, "parse", None)
        if parse is not None:
            return parse(self)
        try:
            return json.loads(self.arguments)
        except (ValueError, RecursionError):
            raise ToolArgumentsError(
                f"the arguments of tool call {self.name!r} are not valid JSON",
                tool_call_id=self.id,
                tool_name=self.name,
                arguments=self.arguments,
            ) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """The result of a tool call that `max_tool_rounds` ran.

    `content` is what the model is told: a text, or a list of content parts. `error` is the exception of the
    tool; the model is told its type and its message.
    """

    call: ToolCall
    content: str | Sequence[Mapping[str, Any]]
    error: BaseException | None = None

    @property
    def message(self) -> Message:
        """The tool message that answers the call."""
        told = {"role": "tool", "tool_call_id": self.call.id, "content": self.content}
        return told if self.error is None else {**told, "is_error": True}


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallDelta:
    """A fragment of a streamed tool call: `index` is the number of the call, `arguments` the next piece."""

    index: int
    id: str = ""
    name: str = ""
    arguments: str = ""


@quickly_made
@dataclass(frozen=True, slots=True, kw_only=True)
class Delta:
    """The part of an answer that one step of a stream added. `str(delta)` is its text.

    `index` is the number of the sample, from 0, in a stream of several (`n`). `tool_results` are the results
    of tools that `max_tool_rounds` ran. The deltas after them belong to the next answer of the model, in
    which tool calls are numbered anew.
    """

    text: str = ""
    reasoning: str = ""
    tool_calls: tuple[ToolCallDelta, ...] = ()
    index: int = 0
    tool_results: tuple[ToolResult, ...] = ()

    def __str__(self) -> str:
        return self.text

    def __bool__(self) -> bool:
        return bool(self.text or self.reasoning or self.tool_calls or self.tool_results)


Step: TypeAlias = Delta | str
"""One step of a stream before its reader takes it; empty where the step added nothing.

A step that adds only text, as most do, stays a `str` until then. As objects, the waiting steps of a long
stream cost a fifth of its CPU time, because the garbage collector went through them again and again."""


def delta_of(step: Step) -> Delta:
    """The `Delta` of a step.

    >>> delta_of("Hello").text
    'Hello'
    """
    return Delta(text=step) if isinstance(step, str) else step


@quickly_made
@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One sample of an answer. `message` can be appended to the conversation."""

    text: str = ""
    reasoning: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: FinishReason = "stop"
    message: Message = field(default_factory=dict)
    logprobs: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRounds:
    """The rounds of a call with `max_tool_rounds`."""

    responses: tuple[Response, ...]
    messages: tuple[Message, ...]
    results: tuple[ToolResult, ...]


@quickly_made
@dataclass(frozen=True, slots=True, kw_only=True)
class Response(Generic[T_co]):
    """A complete answer. It is the same whether it was streamed, awaited or read from the cache.

    For type checkers, `Response[City]` is a response whose `parsed` is a `City`.

    `cost` is the cost of this call in USD: 0 for a cache hit, None where it is unknown. `cost_source` tells
    where it comes from: "reply" if the provider reported it, "prices" for the price table, "litellm" for
    litellm's price map, None for a cache hit and an unknown cost. `model` is the model that answered, as the
    provider names it. `failures` are the requests of this call that failed before
    one succeeded, and those whose answers did not match `response_format`. `schema_in_prompt` says that the
    provider could not enforce the schema, so the prompt asked for it. `raw` is the provider's unchanged
    answer. `dropped` has the parameters that `unsupported="drop"` left out. `metadata` is that of the input
    in its batch.

    The answer to a call with `max_tool_rounds` is the last one of the model. Its `usage`, `cost`, `timing`
    and `failures` are the sums of all `rounds`, and `timing.total` contains the time of the tools.
    """

    choices: tuple[Choice, ...]
    usage: Usage
    model: str
    provider: str
    id: str | None = None
    cost: float | None = None
    cost_source: CostSource | None = None
    cached: bool = False
    timing: Timing = Timing()
    failures: tuple[FailedAttempt, ...] = field(default=(), repr=False)
    body: bytes = field(default=b"null", repr=False)
    response_format: Any = field(default=None, repr=False, compare=False)
    metadata: Any = field(default=None, repr=False)
    tool_rounds: ToolRounds | None = field(default=None, repr=False)
    dropped: tuple[str, ...] = ()
    schema_in_prompt: bool = field(default=False, repr=False)

    @property
    def text(self) -> str:
        """The text of the first sample; empty if the model only called tools."""
        return self.choices[0].text

    @property
    def texts(self) -> list[str]:
        """The texts of all `n` samples."""
        return [choice.text for choice in self.choices]

    @property
    def reasoning(self) -> str:
        """The reasoning of the first sample as far as the provider shows it; empty if it shows none."""
        return self.choices[0].reasoning

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The function calls that the first sample requests."""
        return self.choices[0].tool_calls

    @property
    def finish_reason(self) -> FinishReason:
        """Why the first sample ended."""
        return self.choices[0].finish_reason

    @property
    def message(self) -> Message:
        """The first sample as an assistant message, signatures included, to continue the conversation."""
        return self.choices[0].message

    @property
    def logprobs(self) -> Any:
        """Log probabilities of the first sample in the provider's form, or None."""
        return self.choices[0].logprobs

    @property
    def rounds(self) -> tuple[Response, ...]:
        """The answers of the model, one for each round of `max_tool_rounds`; else this one alone."""
        return (self,) if self.tool_rounds is None else self.tool_rounds.responses

    @property
    def tool_results(self) -> tuple[ToolResult, ...]:
        """The results of the tools that `max_tool_rounds` ran, in the order of their calls."""
        return () if self.tool_rounds is None else self.tool_rounds.results

    @property
    def messages(self) -> list[Message]:
        """The whole conversation of a call with `max_tool_rounds`, to be continued by another call.

        It has the system prompt, the messages of the call, the answers of all rounds and the results of the
        tools.

        Raises:
            RuntimeError: the call had no `max_tool_rounds`.
        """
        if self.tool_rounds is None:
            raise RuntimeError(
                "messages holds the conversation of a call with max_tool_rounds; without it, append "
                "response.message to your own list"
            )
        return list(self.tool_rounds.messages)

    @property
    def raw(self) -> Any:
        """The provider's answer in its own wire format, as Python values.

        It is a list of answers if the samples of the call were sent as separate requests.
        """
        return json.loads(self.body)

    @property
    def parsed(self) -> T_co:
        """The answer as a value of the type in `response_format`, or as Python values for a JSON schema.

        None if no JSON was requested. `None` never stands for an answer that cannot be read.

        Raises:
            RefusalError: the model refused, or a content filter stopped it.
            LengthFinishReasonError: the answer was cut at its token limit.
            SchemaMismatchError: the text is not JSON, or does not match the schema.
        """
        reading = self._read(self.choices[0])
        # Without a response format, the parameter of the type is Any.
        return None if reading is None else reading.value  # type: ignore[return-value]

    @property
    def all_parsed(self) -> list[T_co]:
        """`parsed` of all `n` samples; empty if no JSON was requested. It raises what `parsed` raises."""
        readings = map(self._read, self.choices)
        return [reading.value for reading in readings if reading is not None]

    @property
    def parsed_from(self) -> ParsedFrom | None:
        """Where the JSON of `parsed` was; None if no JSON was requested.

        "text" is the whole text, "fence" a Markdown code block, "prose" among words. It raises what `parsed`
        raises.
        """
        reading = self._read(self.choices[0])
        return None if reading is None else reading.source

    def _read(self, choice: Choice) -> Reading | None:
        if self.response_format is None or self.response_format == {"type": "text"}:
            return None
        where: dict[str, Any] = {"provider": self.provider, "model": self.model}
        reason = choice.finish_reason
        if reason in ("refusal", "content_filter"):
            raise RefusalError(f"there is nothing to parse: finish_reason is {reason!r}", **where)
        if reason == "length":
            raise LengthFinishReasonError("the answer was cut at its token limit; raise max_tokens", **where)
        # Most answers are not parsed, and a hit loads as little as possible.
        from ._schemas.reading import NoMatchError, read
        from ._schemas.structure import structure_of

        structure = structure_of(self.response_format)
        try:
            return None if structure is None else read(choice.text, structure)
        except NoMatchError as error:
            problem = str(error)
        called = ", and the model called tools" if choice.tool_calls else ""
        raise SchemaMismatchError(
            f"the answer does not match response_format: {problem}{called}",
            text=choice.text,
            validation_error=problem,
            usage=self.usage,
            cost=self.cost,
            **where,
        )

    def to_dict(self) -> dict[str, Any]:
        """The response as JSON-ready values, from which `from_dict` makes an equal one.

        The attributes of the first sample come first, `choices` has every sample, and `body` is the
        provider's answer as JSON text. `parsed` is None where it would raise. A type in
        `response_format` becomes its JSON schema.
        """
        try:
            parsed = self.parsed
        except OutputError:
            parsed = None
        described = self.response_format
        if described is not None and not isinstance(described, Mapping):
            from ._schemas.structure import structure_of

            structure = structure_of(described)
            if structure is not None:
                named = {"name": structure.name, "schema": structure.schema}
                described = {"type": "json_schema", "json_schema": named}
        facts = {name: getattr(self, name) for name in _RESPONSE_FIELDS}
        return {
            "text": self.text,
            "finish_reason": self.finish_reason,
            "reasoning": self.reasoning,
            "tool_calls": json_value(self.tool_calls),
            "parsed": json_value(parsed),
            **json_value(facts | {"response_format": described, "body": _written(self.body)}),
        }

    @classmethod
    def from_dict(cls, facts: Mapping[str, Any], *, response_format: Any = None) -> Response:
        """The response that `to_dict` wrote.

        Args:
            facts: The dict. Fields that a response does not have are ignored.
            response_format: The pydantic model for `parsed`, which the dict has as a JSON schema only.

        Raises:
            RequestError: it is not the dict of a response.

        >>> answer = Response(choices=(Choice(text="4"),), usage=Usage(), model="m", provider="p")
        >>> Response.from_dict(json.loads(json.dumps(answer.to_dict()))) == answer
        True
        """
        known = {name: facts[name] for name in _RESPONSE_FIELDS if name in facts}
        try:
            known["choices"] = tuple(map(_choice, known["choices"]))
            known["usage"] = _usage(known["usage"])
            known["timing"] = Timing(**known.get("timing") or {})
            known["failures"] = READERS["failures"](known.get("failures") or ())
            known["body"] = _read(known.get("body", "null"))
            if response_format is not None:
                known["response_format"] = response_format
            return cls(**known)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            found = f"the dict of {facts['error']}" if facts.get("error") else shown(dict(facts))
            raise RequestError(f"this is not the dict of a response: {found} ({error!r})") from None

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        text = self.text if len(self.text) <= 80 else f"{self.text[:77]}..."
        return (
            f"Response({text!r}, model={self.model!r}, finish_reason={self.finish_reason!r}, "
            f"tokens={self.usage.input_tokens}+{self.usage.output_tokens}, {_cost_text(self)})"
        )

    def _repr_html_(self) -> str:
        import html

        facts = (
            f"{self.provider} · {self.model} · {self.finish_reason} · "
            f"{self.usage.input_tokens} + {self.usage.output_tokens} tokens · "
            f"{_cost_text(self)} · {self.timing.total:.2f} s"
        )
        return (
            f'<div><div style="white-space: pre-wrap">{html.escape(self.text)}</div>'
            f"<small>{html.escape(facts)}</small></div>"
        )


_RESPONSE_FIELDS = tuple(entry.name for entry in fields(Response))


def _choice(facts: Mapping[str, Any]) -> Choice:
    calls = tuple(ToolCall(**call) for call in facts["tool_calls"])
    return Choice(**{**facts, "tool_calls": calls})


def _usage(facts: Mapping[str, int]) -> Usage:
    return Usage(**facts)


def _written(body: bytes) -> str | dict[str, str]:
    try:
        return body.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(body).decode()}


def _read(body: str | Mapping[str, str]) -> bytes:
    return body.encode() if isinstance(body, str) else base64.b64decode(body["base64"])


@quickly_made
@dataclass(frozen=True, slots=True, kw_only=True)
class Embeddings:
    """The vectors of some texts, in the order of the texts.

    `len()`, iteration and indexing work on `vectors`. `cost` is the real cost of this call in USD: 0 if all
    vectors came from the cache, None if it is unknown. `cost_source` is that of `Response`. `usage` is the
    sum over all texts. `cached` is true if all vectors came from the cache. `model` is the name that the
    provider reports. `failures` are the requests that were sent for this call and failed.

    >>> embeddings = Embeddings(vectors=([0.6, 0.8], [1.0, 0.0]), usage=Usage(input_tokens=2), model="m",
    ...                         provider="p", cost=0.0)
    >>> embeddings
    Embeddings(2 vectors of 2 dimensions, model='m', tokens=2, $0.000000)
    >>> embeddings[1]
    [1.0, 0.0]
    """

    vectors: tuple[list[float], ...]
    """Plain lists of floats. `numpy()` returns the same numbers in an eighth of the memory."""
    usage: Usage
    model: str
    provider: str
    cost: float | None = None
    cost_source: CostSource | None = None
    cached: bool = False
    timing: Timing = Timing()
    failures: tuple[FailedAttempt, ...] = field(default=(), repr=False)

    @property
    def dimensions(self) -> int:
        """How many numbers each vector has; 0 without vectors."""
        return len(self.vectors[0]) if self.vectors else 0

    def numpy(self) -> Any:
        """The vectors as a NumPy array: one row per text, float32.

        Raises:
            MissingDependencyError: NumPy is not installed.
        """
        try:
            import numpy
        except ImportError:
            raise MissingDependencyError("Embeddings.numpy() needs NumPy: pip install numpy") from None
        return numpy.array(self.vectors, dtype=numpy.float32).reshape(len(self.vectors), self.dimensions)

    def __len__(self) -> int:
        return len(self.vectors)

    def __iter__(self) -> Iterator[list[float]]:
        return iter(self.vectors)

    @overload
    def __getitem__(self, index: int) -> list[float]: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[list[float], ...]: ...

    def __getitem__(self, index: int | slice) -> list[float] | tuple[list[float], ...]:
        return self.vectors[index]

    def __repr__(self) -> str:
        return (
            f"Embeddings({self._size()}, model={self.model!r}, tokens={self.usage.input_tokens}, "
            f"{_cost_text(self)})"
        )

    def _repr_html_(self) -> str:
        import html

        facts = (
            f"{self.provider} · {self.model} · {self.usage.input_tokens} tokens · "
            f"{_cost_text(self)} · {self.timing.total:.2f} s"
        )
        return f"<div>{self._size()}<br><small>{html.escape(facts)}</small></div>"

    def _size(self) -> str:
        plural = "" if len(self.vectors) == 1 else "s"
        return f"{len(self.vectors)} vector{plural} of {self.dimensions} dimensions"


def _cost_text(answer: Response | Embeddings) -> str:
    if answer.cached:
        return "cached"
    return "cost unknown" if answer.cost is None else f"${answer.cost:.6f}"


Result: TypeAlias = Response[Any] | LLMError
"""The result of one input of a batch."""


def result_from_dict(facts: Mapping[str, Any]) -> Result:
    """The response or the error that `to_dict` wrote.

    Raises:
        RequestError: it is the dict of neither.
    """
    return LLMError.from_dict(facts) if facts.get("error") else Response.from_dict(facts)


READERS["usage"] = _usage
READERS["results"] = lambda results: [
    result_from_dict(each) if isinstance(each, dict) else each for each in results
]
