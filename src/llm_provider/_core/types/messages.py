"""Messages, the calls of tools in them, and the parts of a stream."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self, TypeAlias

from ..errors import ToolArgumentsError
from ..hints import NoMapping, missing_attribute
from ..runtime.frozen import quick_maker

FinishReason: TypeAlias = Literal["stop", "length", "tool_calls", "content_filter", "refusal", "unknown"]
"""Why a model stopped, in one vocabulary for every provider."""

INCOMPLETE: Mapping[FinishReason, str] = {
    "length": "the answer was cut at its token limit",
    "refusal": "the model refused",
    "content_filter": "a content filter stopped the answer",
    "unknown": "the answer ended for a reason that is not known",
}
"""The finish reasons of an answer that is not whole, and what people read of them."""

Message: TypeAlias = Mapping[str, Any]
"""One OpenAI-style chat message: `{"role": ..., "content": ...}`."""


class AssistantMessage(dict[str, Any]):
    """The message of an answer: a dict, which says so where a program reads its attributes."""

    __slots__ = ()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name in self:
                short = ", or response.text" if name == "content" else ""
                raise AttributeError(f"a message is a dict: use message[{name!r}]{short}")
            raise missing_attribute(self, name)


def text_to_parse(choice: Any) -> str:
    """What `parsed` reads of a `Choice`: its text without the commentary of OpenAI's models before it.

    Like `parse` of newer SDKs, it reads the messages of a Responses answer by their `phase`.
    """
    own = choice.message.get("provider_specific_fields")
    items = own.get("content") if isinstance(own, Mapping) else None
    items = [item for item in items if isinstance(item, Mapping)] if isinstance(items, list) else []
    messages = [item for item in items if item.get("type") == "message"]
    answers = [item for item in messages if item.get("phase") != "commentary"]
    if not answers or len(answers) == len(messages):
        text: str = choice.text
        return text
    final = [item for item in answers if item.get("phase") == "final_answer"]
    parts = [part for item in final or answers for part in item.get("content") or ()]
    return "".join([part.get("text") or part.get("refusal") or "" for part in parts])


class SavedImage(Protocol):
    """An image of Pillow. It is sent as PNG."""

    def save(self, fp: Any, form: str | None = None, /) -> None:
        """Write the image to a file."""


Content: TypeAlias = str | os.PathLike[str] | bytes | SavedImage | Mapping[str, Any]
"""One part of a message: text, a file by its path, the bytes of a file, an image of Pillow, or a dict in
OpenAI's form."""

EmbedInput: TypeAlias = Content | Sequence[Content]
"""What `embed` makes one vector of: a text, another content, or several contents together."""

Prompt: TypeAlias = str | Sequence[Message] | Sequence[Content]
"""The input of a call: one user message as a `str` or a list of contents, or a whole conversation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall(NoMapping):
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
        message = {"role": "tool", "tool_call_id": self.call.id, "content": self.content}
        return message if self.error is None else {**message, "is_error": True}


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallDelta:
    """A fragment of a streamed tool call: `index` is the number of the call, `arguments` the next piece.

    `id` comes with the first fragment, but at the end of a stream of OpenAI's Responses API: some servers
    give a call another id at its end, which counts. A server may give none, or one twice: the calls of the
    response have ids of their own then.
    """

    index: int
    id: str = ""
    name: str = ""
    arguments: str = ""


class _PartOfAnswer(NoMapping):
    """A slot beside the fields of `Delta`, which neither pickles nor comparisons have."""

    __slots__ = ("_so_far",)

    _so_far: tuple[Any, int]
    """The answer, and how many of its pieces had come, in a stream with a `response_format`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delta(_PartOfAnswer):
    """The part of an answer that one step of a stream added. `str(delta)` is its text.

    `index` is the number of the sample, from 0, in a stream of several (`n`). `tool_results` are the results
    of tools that `max_tool_rounds` ran. The deltas after them belong to the next answer of the model, in
    which tool calls are numbered anew. With `response_format`, `partial` is the answer so far.
    """

    text: str = ""
    reasoning: str = ""
    tool_calls: tuple[ToolCallDelta, ...] = ()
    index: int = 0
    tool_results: tuple[ToolResult, ...] = ()

    @property
    def partial(self) -> Any:
        """What is known of the answer with a `response_format` as far as this delta; None while nothing is.

        It has the form of `Response.parsed`. Each field that is there is complete and validated, and each
        element of a list is whole. A pydantic model or a TypedDict may lack fields, a dataclass is a
        `types.SimpleNamespace` until its end. Partials share their parts, so do not change them.

        >>> from llm_provider import stream
        >>> from llm_provider.simulator import Simulator
        >>> with Simulator() as simulator:
        ...     url = simulator.url("openai")
        ...     with stream("gpt-6.1-sol", "Three primes", base_url=url, response_format=list[int]) as deltas:
        ...         partials = [delta.partial for delta in deltas]
        >>> partials[-1] == deltas.response.parsed
        True
        """
        return self._read_so_far(with_text=False)

    @property
    def partial_with_text(self) -> Any:
        """`partial`, and what has come of the text and of the element of a list that are written now."""
        return self._read_so_far(with_text=True)

    def _read_so_far(self, *, with_text: bool) -> Any:
        answer, end = getattr(self, "_so_far", (None, 0))
        return None if answer is None else answer.partial(end, with_text=with_text)

    def __str__(self) -> str:
        return self.text

    def __bool__(self) -> bool:
        return bool(self.text or self.reasoning or self.tool_calls or self.tool_results)


make_delta = quick_maker(Delta)

Step: TypeAlias = Delta | str
"""One step of a stream before its reader takes it; empty where the step added nothing.

A step that adds only text, as most do, stays a `str` until then. As objects, the waiting steps of a long
stream cost a fifth of its CPU time, because the garbage collector went through them again and again."""


class Commentary(str):
    """A step's text that is not, or not all of it, a part of the structured answer."""

    __slots__ = ("answer",)

    answer: str
    """What is a part of it."""

    def __new__(cls, text: str, answer: str = "") -> Self:
        self = super().__new__(cls, text)
        self.answer = answer
        return self


def delta_of(step: Step) -> Delta:
    """The `Delta` of a step."""
    return make_delta(text=step) if isinstance(step, str) else step
