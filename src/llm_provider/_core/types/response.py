"""A complete answer: `Response`."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, cast

from .. import doors
from ..errors import (
    READERS,
    LengthFinishReasonError,
    LLMError,
    OutputError,
    RefusalError,
    RequestError,
    SchemaMismatchError,
    cite,
)
from ..hints import NoMapping
from ..json_values import check_fields, json_value
from ..runtime.frozen import quick_maker, read_old_state, with_late_field
from .messages import AssistantMessage, FinishReason, Message, ToolCall, ToolResult, text_to_parse
from .score_values import list_scores, with_scores
from .usage import PaidResult, RowLabel, Timing, Usage, cost_text, make_timing, token_from_dict, usage_of

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    from ..._features.fallback.passed_over import PassedOver
    from ..._features.rich_content import values
    from ..._features.rich_content.values import Citation, GeneratedAudio, GeneratedImage, ServerToolCall
    from ..schemas.reading import ParsedFrom, Reading
    from .messages import FinishReason as EndOfSample
    from .usage import ServedBy, TokenLogprob

    T_co = TypeVar("T_co", covariant=True, default=Any)
else:
    # The default is for type checkers, and before Python 3.13 `typing` has none.
    from typing import TypeVar

    T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice(NoMapping):
    """One sample of an answer. `message` can be appended to the conversation."""

    text: str = ""
    reasoning: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: FinishReason = "stop"
    message: Message = field(default_factory=dict)
    logprobs: tuple[TokenLogprob, ...] | None = None


with_late_field(Choice, "logprobs")
with_late_field(Choice, "message", str, lambda text: AssistantMessage(role="assistant", content=text))
make_choice = quick_maker(Choice)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRounds:
    """The rounds of a call with `max_tool_rounds`."""

    responses: tuple[Response, ...]
    messages: tuple[Message, ...]
    results: tuple[ToolResult, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Response(PaidResult, NoMapping, Generic[T_co]):
    """A complete answer. It is the same whether it was streamed, awaited or read from the cache.

    For type checkers, `Response[City]` is a response whose `parsed` is a `City`.

    `cost` is the cost of this call in USD, the sum over all its requests, those that failed too. It is 0 for
    a cache hit, and None if the cost of one request is unknown. `cost_source` tells where it comes from:
    "reply" if the provider reported it, "prices" for the price table, "litellm" for litellm's price map, None
    for a cache hit and an unknown cost. `cost_unknown` says why a `cost` is None, and `cost_bounds` between
    which amounts it lies: the second is None where nothing bounds it. `price` is what the answer itself cost
    when it was bought, also where it is stored: the requests that were answered, without those that failed;
    None if that is unknown. `model` is the model that answered, as the provider names it. `failures` are
    the requests of this call that failed before one succeeded, and those whose answers did not match
    `response_format`. `schema_in_prompt` says that the provider could not enforce the schema, so the prompt
    asked for it. `raw` is the provider's unchanged answer. `dropped` has the parameters that
    `unsupported="drop"` left out. `metadata` is the input's, in its batch.

    The answer to a call with `max_tool_rounds` is the last one of the model. Its `usage`, `cost`, `timing`
    and `failures` are the sums of all `rounds`, and `timing.total` contains the time of the tools.
    """

    choices: tuple[Choice, ...]
    id: str | None = None
    body: bytes = field(default=b"null", repr=False)
    response_format: Any = field(default=None, repr=False, compare=False)
    metadata: Any = field(default=None, repr=False)
    row_label: RowLabel | None = field(default=None, repr=False, compare=False)
    """The label of the input in the index of its data frame or series; None for other inputs."""
    tool_rounds: ToolRounds | None = field(default=None, repr=False)
    dropped: tuple[str, ...] = ()
    schema_in_prompt: bool = field(default=False, repr=False)
    prompt: str | list[Message] | None = field(default=None, repr=False, compare=False)
    """The text that was asked, or the messages, whose media are without their data; None where it is not
    known, as in a batch that another process submitted."""
    origins: tuple[Mapping[str, str] | None, ...] = field(default=(), repr=False)
    """For each sample, the fields of `served_by` that are not in `raw`, but in headers or the address."""
    passed_over: tuple[PassedOver, ...] = ()
    """The models before this one in the list of `fallback`, and why each did not answer."""
    cache_keys: tuple[str | None, ...] = field(default=(), repr=False, compare=False)
    """For each sample, the key of its cache entry; None where nothing was stored, as with cache="off"."""
    stored_usages: tuple[Usage, ...] = field(default=(), repr=False, compare=False)
    """The usage of each sample that was stored or shared, where others were not. `usage` contains it."""

    __setstate__ = read_old_state

    @property
    def served_by(self) -> ServedBy | None:
        """Who answered the first sample, as far as the reply and its headers tell; None if they tell nothing.

        It is read from `raw` each time.
        """
        try:
            reply = self.raw
        except ValueError:
            # A response that a program has made may have any body.
            reply = None
        origin = self.origins[0] if self.origins else None
        return cast("ServedBy | None", doors.read_served_by(self.provider, reply, origin))

    @property
    def text(self) -> str:
        """The text of the first sample; empty if the model only called tools."""
        return held if type(held := held_choices(self)) is str else held[0].text

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
    # Jedi 0.20 completes nothing behind an object with a property that evaluates to a `Literal`, so its type
    # has a name for type checkers only.
    def finish_reason(self) -> EndOfSample:
        """Why the first sample ended."""
        return self.choices[0].finish_reason

    @property
    def message(self) -> Message:
        """The first sample as an assistant message, signatures included, to continue the conversation."""
        return self.choices[0].message

    @property
    def logprobs(self) -> tuple[TokenLogprob, ...] | None:
        """The tokens of the first sample with their log probabilities; None if none were asked for.

        They have one form for every provider. `raw` has the provider's own.
        """
        return self.choices[0].logprobs

    @property
    def samples(self) -> list[Response[T_co]]:
        """A response for each of the `n` samples, with its own text, `raw`, `citations` and `images`.

        Their `usage`, `cost` and `timing` are for the whole call, because the samples of one request
        share them.
        """
        if len(self.choices) == 1:
            return [self]
        raw = self.raw
        alike = isinstance(raw, list) and len(raw) == len(self.choices)
        replies = raw if alike else [raw] * len(self.choices)
        return [
            with_scores(
                replace(
                    self,
                    choices=(choice,),
                    body=json.dumps(reply).encode(),
                    origins=self.origins[number : number + 1],
                    cache_keys=self.cache_keys[number : number + 1],
                ),
                self.score_values[number : number + 1],
            )
            for number, (choice, reply) in enumerate(zip(self.choices, replies, strict=True))
        ]

    @property
    def citations(self) -> list[Citation]:
        """The sources that the first sample cites, in one form for every provider.

        Like `images`, `audio` and `server_tool_calls`, they are read from `raw` each time.
        """
        return cast("list[Citation]", self._read_extra("citations"))

    @property
    def images(self) -> list[GeneratedImage]:
        """The images that the first sample holds."""
        return cast("list[GeneratedImage]", self._read_extra("images"))

    @property
    def audio(self) -> GeneratedAudio | None:
        """The speech of the first sample, or None."""
        return cast("GeneratedAudio | None", self._read_extra("audio"))

    @property
    def server_tool_calls(self) -> list[ServerToolCall]:
        """The calls of the provider's own tools in the first sample, such as web searches, with results."""
        return cast("list[ServerToolCall]", self._read_extra("server_tool_calls"))

    @property
    def prompt_cache_miss(self) -> values.PromptCacheMiss | None:
        """Why the provider could not read the prompt's beginning from its prompt cache, or None.

        A call asks for it with `extra_body`, by the id of an earlier answer: docs/cache.md. With
        `prompt_caching="explicit"` it says for a Gemini model why no stored beginning was read.
        """
        if (origin := self.origins[0] if self.origins else None) and "prompt_cache_miss" in origin:
            return doors.rich_content.PromptCacheMiss(reason=origin["prompt_cache_miss"])
        return cast("values.PromptCacheMiss | None", self._read_extra("prompt_cache_miss"))

    @property
    def token_ids(self) -> tuple[int, ...] | None:
        """The ids of the first sample's tokens in the model's vocabulary; None where the reply has none.

        vLLM and Fireworks give them and the prompt's with `extra_body={"return_token_ids": True}`,
        Together with `logprobs=True`, and Groq with `extra_body={"debug": True}`.
        """
        return cast("tuple[int, ...] | None", self._read_extra("token_ids"))

    @property
    def prompt_token_ids(self) -> tuple[int, ...] | None:
        """The ids of the prompt's tokens, with the model's template; None where the reply has none."""
        return cast("tuple[int, ...] | None", self._read_extra("prompt_token_ids"))

    def _read_extra(self, name: str) -> object:
        return doors.rich_content.read(name, self.provider, self.raw)

    @property
    def rounds(self) -> tuple[Response, ...]:
        """The answers of the model, one for each round of `max_tool_rounds`; else only this one."""
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
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError) as error:
            raise RequestError(f"the body of the response is not JSON: {error}") from None

    @property
    def parsed(self) -> T_co:
        """The answer as a value of the type in `response_format`, or as Python values for a JSON schema.

        None if no JSON was requested. `None` never stands for an answer that cannot be read.

        Raises:
            RefusalError: the model refused, or a content filter stopped it.
            LengthFinishReasonError: the answer was cut at its token limit.
            SchemaMismatchError: the text is not JSON, or does not match the schema.
        """
        reading = self._parse(self.choices[0])
        # Without a response format, the parameter of the type is Any.
        return None if reading is None else reading.value  # type: ignore[return-value]  # no format, no type

    @property
    def all_parsed(self) -> list[T_co]:
        """`parsed` of all `n` samples; empty if no JSON was requested. It raises what `parsed` raises."""
        readings = map(self._parse, self.choices)
        return [reading.value for reading in readings if reading is not None]

    @property
    def parsed_from(self) -> ParsedFrom | None:
        """Where the JSON of `parsed` was; None if no JSON was requested.

        "text" is the whole text, "fence" a Markdown code block, "prose" among words. It raises what `parsed`
        raises.
        """
        return None if (reading := self._parse(self.choices[0])) is None else reading.source

    def _parse(self, choice: Choice) -> Reading | None:
        if self.response_format is None or self.response_format == {"type": "text"}:
            return None
        if (reason := choice.finish_reason) in ("refusal", "content_filter"):
            raise self._with_cost(RefusalError(f"there is nothing to parse: finish_reason is {reason!r}"))
        if reason == "length":
            problem = "the answer was cut at its token limit; raise max_tokens"
            raise self._with_cost(LengthFinishReasonError(problem))
        # Most answers are not parsed, and a hit loads as little as possible.
        from ..schemas.reading import NoMatchError, read
        from ..schemas.structure import structure_of

        structure = structure_of(self.response_format)
        try:
            return None if structure is None else read(text_to_parse(choice), structure)
        except NoMatchError as error:
            problem = str(error)
        called = ", and the model called tools" if choice.tool_calls else ""
        message = f"the answer does not match response_format: {problem}{called}"
        raise self._with_cost(SchemaMismatchError(message, text=choice.text, validation_error=problem))

    def _with_cost(self, error: OutputError) -> OutputError:
        """An error about this answer, with what the answer cost."""
        error.provider, error.model = self.provider, self.model
        error.attempts, error.failures, error.maybe_billed = self.attempts, self.failures, self.maybe_billed
        error.cost, error.usage, error.passed_over = self.cost, self.usage, self.passed_over
        return error

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
        form = self.response_format
        if form is not None and not isinstance(form, Mapping):
            from ..schemas.structure import structure_of

            if (structure := structure_of(form)) is not None:
                # A bare schema is read with the freedom that the provider of the answer was given.
                form = {"title": structure.name, **(structure.schema or {})}
        names = _RESPONSE_FIELDS if self.stored_usages else _RESPONSE_FIELDS[:-1]
        values = {name: getattr(self, name) for name in names}
        try:
            body: str | dict[str, str] = self.body.decode()
        except UnicodeDecodeError:
            body = {"base64": base64.b64encode(self.body).decode()}
        return {
            "text": self.text,
            "finish_reason": self.finish_reason,
            "reasoning": self.reasoning,
            "tool_calls": json_value(self.tool_calls),
            "parsed": json_value(parsed),
            "served_by": None if (who := self.served_by) is None else who.to_dict(),
            **json_value(values | {"response_format": form, "body": body}),
            **list_scores(self),
        }

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any], *, response_format: Any = None) -> Response:
        """The response that `to_dict` wrote.

        Args:
            fields: The dict. Fields that a response does not have are ignored.
            response_format: The pydantic model for `parsed`, which the dict has as a JSON schema only.

        Raises:
            RequestError: it is not the dict of a response.

        >>> from llm_provider import Usage
        >>> answer = Response(choices=(Choice(text="4"),), usage=Usage(), model="m", provider="p")
        >>> Response.from_dict(json.loads(json.dumps(answer.to_dict()))) == answer
        True
        """
        if not isinstance(fields, Mapping):
            raise RequestError(
                f"from_dict takes the dict that to_dict wrote, not {type(fields).__name__}: write "
                "Response.from_dict(json.loads(text)) for JSON"
            )
        known = {name: fields[name] for name in _RESPONSE_FIELDS if name in fields}
        try:
            check_fields(known)
            first, *others = map(_read_choice, known["choices"])
            known["choices"] = (first, *others)
            known["timing"] = Timing(**check_fields(known.get("timing") or {}))
            body = known.get("body", "null")
            known["body"] = body.encode() if isinstance(body, str) else base64.b64decode(body["base64"])
            known["tool_rounds"] = _read_rounds(known.get("tool_rounds"))
            for name in ("dropped", "origins", "cache_keys"):
                known[name] = tuple(known.get(name) or ())
            for name in ("failures", "passed_over", "stored_usages"):
                known[name] = READERS[name](known.get(name) or ())
            known["usage"] = READERS["usage"](known["usage"])
            for name in ("cost_bounds", "row_label"):
                known[name] = READERS[name](known.get(name))
            if response_format is not None:
                known["response_format"] = response_format
            return with_scores(cls(**known), check_fields(fields).get("score_values"))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            description = f"the dict of {fields['error']}" if fields.get("error") else cite(dict(fields))
            raise RequestError(f"this is not the dict of a response: {description} ({error!r})") from None

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        text = self.text if len(self.text) <= 80 else f"{self.text[:77]}..."
        return (
            f"Response({text!r}, model={self.model!r}, finish_reason={self.finish_reason!r}, "
            f"tokens={self.usage.input_tokens}+{self.usage.output_tokens}, "
            f"{cost_text(self)})"
        )

    def _repr_html_(self) -> str:
        return doors.results_views.response_as_html(self)


# Where nobody reads more than the text of a stored answer, nothing else is made.
held_choices = with_late_field(Response, "choices", str, lambda it: (make_choice(text=it, message=it),))
with_late_field(Response, "usage", tuple, usage_of)
with_late_field(Response, "timing", float, lambda total: make_timing(total=total, overhead=total))
with_late_field(Response, "origins", dict, lambda origin: (origin,))
make_response, make_hit = quick_maker(Response), quick_maker(Response, cost=0.0, cached=True)

_RESPONSE_FIELDS = tuple(entry.name for entry in fields(Response))


def _read_choice(fields: Mapping[str, Any]) -> Choice:
    calls = tuple(ToolCall(**check_fields(call)) for call in check_fields(fields)["tool_calls"])
    logprobs = None if (tokens := fields.get("logprobs")) is None else tuple(map(token_from_dict, tokens))
    message = AssistantMessage(fields.get("message") or {})
    return Choice(**{**fields, "tool_calls": calls, "message": message, "logprobs": logprobs})


def _read_rounds(fields: Mapping[str, Any] | None) -> ToolRounds | None:
    """The rounds, in which the exception of a tool is its text."""
    if fields is None:
        return None
    return ToolRounds(
        responses=tuple(map(Response.from_dict, fields["responses"])),
        messages=tuple(fields["messages"]),
        results=tuple(
            ToolResult(
                call=ToolCall(**{**result["call"], "tool": None}),
                content=result["content"],
                error=None if result["error"] is None else RuntimeError(result["error"]),
            )
            for result in fields["results"]
        ),
    )


Result: TypeAlias = Response[Any] | LLMError
"""The result of one input of a batch."""


def result_from_dict(fields: Mapping[str, Any]) -> Any:
    """The response, the scores or the error that `to_dict` wrote, else a `RequestError`."""
    for name in ("cost", "price"):
        amount = fields.get(name)
        if amount is not None and not 0 <= amount <= sys.float_info.max:
            raise RequestError(f"{name} is no number of USD: {cite(amount)}")
    for name, kind in (("scores", "Scores"), ("decisions", "Decisions")):
        if name in fields:
            own = {each: value for each, value in fields.items() if each != "score_values"}
            result = getattr(getattr(doors, name), kind).from_dict(own)
            return with_scores(result, check_fields(fields).get("score_values"))
    return LLMError.from_dict(fields) if fields.get("error") else Response.from_dict(fields)


READERS["row_label"] = lambda label: None if label is None else RowLabel.from_dict(label)
READERS["passed_over"] = lambda entries: tuple(map(doors.passed_over.read_passed_over, entries))
READERS["response"] = Response.from_dict
READERS["samples"] = lambda samples: tuple(map(Response.from_dict, samples))
READERS["results"] = lambda results: [
    result_from_dict(each) if isinstance(each, dict) else each for each in results
]
