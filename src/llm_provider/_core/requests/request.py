"""The arguments of a call → `Request`, of `embed` → `EmbedRequest`. Invalid ones raise before it is sent."""

from __future__ import annotations

import functools
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from .. import doors
from ..errors import RequestError, cite
from ..json_values import JSONMapping, JSONObject
from ..runtime.frozen import quick_maker
from ..runtime.json_pieces import replace_halves
from ..types.messages import Message, Prompt
from .checks import CacheMode, Check, Endpoint, InBatch, ReasoningEffort, check_headers, check_key, number
from .inputs import is_missing, is_table, refuse_prompt
from .parameter_table import CHECKS, RARE, SENT

if TYPE_CHECKING:
    from ..money.budget import Budget
    from ..pace.call_limits import Timeouts
    from .api_keys import APIKey
    from .parameters import EmbedParameters, Parameters
    from .routing import Target
    from .tools import SentTool

_ROLES = ("system", "developer", "user", "assistant", "tool")
# The id of a call in the words of Anthropic and of the Responses API.
_IDS_OF_OTHERS = ("tool_use_id", "call_id")
_MODEL_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,199}", re.ASCII)

_RELATED = frozenset({"system", "top_logprobs", "tool_choice", "max_tool_rounds", *RARE})
"""Parameters that change the messages, need other parameters, or are rare."""

_sent_values = attrgetter(*SENT)
_UNSET = (None,) * len(SENT)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommonArguments:
    strict_model: bool | None = None
    timeout: Timeouts | None = None
    deadline: float | None = None
    max_retries: int | None = None
    outage_patience: float | None = None
    cache: CacheMode | None = None
    max_age: float | None = None
    """Seconds."""
    budget: Budget | None = field(default=None, repr=False)
    token_budget: Budget | None = field(default=None, repr=False)
    in_batch: InBatch | None = None
    extra_body: JSONMapping | None = None
    extra_headers: Mapping[str, str] | None = None
    api_key: APIKey | None = field(default=None, repr=False)
    base_url: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Request(CommonArguments):
    """One call as the user asked for it. `Request.build` makes it."""

    model: str
    messages: tuple[Message, ...]
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    stop: tuple[str, ...] | None = None
    seed: int | None = None
    n: int = 1
    draw: int = 0
    tools: tuple[JSONMapping, ...] | None = None
    max_tool_rounds: int | None = None
    tool_choice: str | JSONMapping | None = None
    response_format: Any = None
    max_repairs: int | None = None
    reasoning_effort: ReasoningEffort | None = None
    endpoint: Endpoint | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None
    options: JSONMapping | None = None
    """The rare parameters that are set, by name; None if there are none."""
    parameters_to_send: JSONMapping = field(init=False, repr=False, compare=False)
    """The parameters that are set and that a wire format has to send, by name, in the table's order."""

    def __post_init__(self) -> None:
        values, parameters = _sent_values(self), self.options or {}
        if values != _UNSET:
            # An empty tuple of stop texts or tools asks for nothing.
            pairs = zip(SENT, values, strict=True)
            parameters = {**{name: value for name, value in pairs if value not in (None, ())}, **parameters}
        object.__setattr__(self, "parameters_to_send", parameters)

    @classmethod
    def build(cls, model: str, messages: Prompt, parameters: Parameters, function: str = "call") -> Request:
        """Check and normalise the arguments of a call by the public function with this name."""
        check_model_name(model)
        checked = check_parameters(function, CHECKS, parameters)
        conversation = _conversation(messages)
        if not _RELATED.isdisjoint(checked):
            system = checked.pop("system", None)
            if not _RELATED.isdisjoint(checked):
                check_together(checked)
            if system is not None:
                conversation = ({"role": "system", "content": system}, *conversation)
        return make_request(model=model, messages=conversation, **checked)

    @property
    def tool_names(self) -> frozenset[str]:
        """The names of the tools that the user defines."""
        return frozenset(name for tool in self.tools or () if (name := _own_name(tool)) is not None)

    @property
    def has_tools(self) -> bool:
        """Whether the request names tools, also in a provider's own form."""
        return bool(self.tools or (self.extra_body or {}).get("tools"))

    def mend_answers(self) -> Request:
        """The request with U+FFFD for each half of a surrogate pair in what a model wrote before."""
        mended = tuple(
            json.loads(replace_halves(json.dumps(dict(message), ensure_ascii=False)))
            if message.get("role") == "assistant" else message
            for message in self.messages
        )  # fmt: skip
        return replace(self, messages=mended)


make_request = quick_maker(Request)


def seal(parameters: Any) -> None:
    """Replace the API key among a call's arguments by an `APIKey`, in place, before anything else is done.

    Tracebacks that show local variables, as in pytest and in error trackers, then show no key. For the same
    reason no local variable here holds the key.

    >>> parameters = {"api_key": "sk-secret"}
    >>> seal(parameters)
    >>> parameters
    {'api_key': APIKey(746b4ad1ca9129e1)}
    """
    if parameters.get("api_key") is not None:
        parameters["api_key"] = check_key("api_key", parameters.pop("api_key"))


def check_model_name(model: object) -> None:
    """Raise a `RequestError` for what is no text, or holds characters that no model name has."""
    if not isinstance(model, str) or not _MODEL_NAME.fullmatch(model) or ".." in model or "//" in model:
        raise RequestError(
            f"model: {cite(model)} is not a model name: expected something like 'gpt-6.1-sol'"
            f"{doors.remedies.model_remedy(model)}"
        )


def check_parameters(function: str, checks: Mapping[str, Check], parameters: JSONMapping) -> JSONObject:
    """The parameters that are set, each checked and normalised. Messages name the public `function`."""
    checked: JSONObject = {}
    for name, value in parameters.items():
        check = checks.get(name)
        if check is None:
            raise TypeError(doors.remedies.describe_unexpected(function, name, checks))
        if value is not None:
            try:
                checked[name] = check(name, value)
            except RequestError:
                if type(value).__name__ in ("NotGiven", "Omit"):
                    raise RequestError(f"{name}: write None or leave it out, not {cite(value)}") from None
                raise
    return checked


def _conversation(messages: Prompt) -> tuple[Message, ...]:
    if isinstance(messages, str):
        if not messages:
            raise RequestError("messages[0] has empty content; give some text or leave the message out")
        return ({"role": "user", "content": messages},)
    if not isinstance(messages, (list, tuple)):
        refuse_prompt("messages", messages)
    if not messages:
        raise RequestError("messages is empty; give at least one message")
    if any(not isinstance(entry, Mapping) or "type" in entry or "parts" in entry for entry in messages):
        # Imported here because most prompts are text.
        from .media import prompt_message

        if any(map(doors.sdk_messages.is_foreign, messages)):
            messages = doors.sdk_messages.plain_messages(messages)
        if any(
            not isinstance(entry, Mapping) or ("type" in entry and "role" not in entry) for entry in messages
        ):
            messages = (prompt_message(messages),)
    return tuple([_check_message(message, f"messages[{index}]") for index, message in enumerate(messages)])


def _check_message(message: Message, where: str) -> Message:
    """A message, whose media are content parts; a `RequestError` if it is none, or cannot be sent."""
    role, content = message.get("role"), message.get("content")
    if role not in _ROLES and role != "function":
        expected = f"expected one of {', '.join(_ROLES)}"
        raise RequestError(
            f"{where} has role {cite(role)}; {expected}{doors.remedies.role_remedy(role, _ROLES)}"
        )
    if content is None:
        # An answer may be empty, or have its content in other fields.
        if role != "assistant":
            remedy = doors.remedies.content_remedy(message)
            raise RequestError(f"{where} has no content; give 'content' as a str or a list of parts{remedy}")
    elif not isinstance(content, (str, list, tuple)):
        from .media import is_medium, with_parts

        if not is_medium(content):
            kind = f"{type(content).__name__}{doors.remedies.content_remedy(message)}"
            raise RequestError(f"{where}.content must be a str or a list of parts, not {kind}")
        message = with_parts(message, where)
    elif not content and role in ("system", "developer", "user") and not (role == "user" and content == ""):
        raise RequestError(f"{where} has empty content; give some text or leave the message out")
    elif not isinstance(content, str) and not all(map(_is_part, content)):
        from .media import with_parts

        message = with_parts(message, where)
    if role in ("tool", "function") and (role == "function" or type(message.get("tool_call_id")) is not str):
        message = _result(message, where)
    calls = message.get("tool_calls") if role == "assistant" else None
    if calls is None:
        return message
    if not isinstance(calls, (list, tuple)):
        raise RequestError(
            f"{where}.tool_calls must be a list, not {cite(calls)}: write those of response.messages"
        )
    if all(isinstance(call, Mapping) for call in calls):
        return message
    return {**message, "tool_calls": [doors.sdk_messages.plain(call) for call in calls]}


def _result(message: Message, where: str) -> Message:
    """The result of a tool. It may have no id: the encoders find the call that it answers."""
    names = ("tool_call_id", *(name for name in _IDS_OF_OTHERS if name in message))
    identifier = next((message[name] for name in names if message.get(name) is not None), None)
    if identifier is not None and type(identifier) not in (str, int):
        raise RequestError(f"{where}.tool_call_id must be the id of a call, not {cite(identifier)}")
    message = {name: value for name, value in message.items() if name not in _IDS_OF_OTHERS}
    return {**message, "role": "tool", "tool_call_id": "" if identifier is None else str(identifier)}


def _is_part(part: object) -> bool:
    if not isinstance(part, Mapping):
        return False
    kind = part.get("type")
    if kind == "text":
        return isinstance(part.get("text"), str)
    return isinstance(kind, str) and kind != "image_url"


def check(name: str, value: object) -> Any:
    """Check and normalise one parameter as `Request.build` does. A client checks its defaults with it."""
    return CHECKS[name](name, value)


def check_together(checked: JSONObject) -> None:
    """Check parameters against each other, and move the rare ones into `options`."""
    if checked.get("top_logprobs") is not None and not checked.setdefault("logprobs", True):
        raise RequestError("top_logprobs was given with logprobs=False; leave logprobs out or set it to True")
    given = {"tool_choice": checked.get("extra_body") or {}, "allowed_tools": {}}
    for name, extra in given.items():
        # OpenAI answers 400 to a choice among no tools: writer/writer-framework#1013.
        if name in checked and not checked.get("tools") and not extra.get("tools"):
            raise RequestError(f"{name} was given without tools; give tools=, or leave {name} out")
    if callable(checked.get("tool_choice")):
        from .tools import choose_tool

        checked["tool_choice"] = choose_tool(checked["tool_choice"], checked.get("tools") or ())
    if "max_tool_rounds" in checked:
        from .tools import check_rounds

        check_rounds(checked)
    if "allowed_tools" in checked:
        choice = checked.get("tool_choice")
        if choice not in (None, "auto", "required"):
            raise RequestError(
                f"allowed_tools was given with tool_choice={cite(choice)}; leave tool_choice out, or set it "
                "to 'auto' or 'required'"
            )
        _check_names("allowed_tools", checked["allowed_tools"], checked["tools"])
    elif isinstance(choice := checked.get("tool_choice"), Mapping):
        function, tools = choice.get("function"), checked.get("tools") or ()
        of_user = all(isinstance(tool, Mapping) and "function" in tool for tool in tools)
        if isinstance(function, Mapping) and tools and of_user:
            _check_names("tool_choice", [str(function.get("name"))], tools)
    if "thinking_budget" in checked and "reasoning_effort" in checked:
        raise RequestError(
            "reasoning_effort and thinking_budget both say how much to reason: leave one of them out"
        )
    options = {name: checked.pop(name) for name in RARE if name in checked}
    # Without its value, a live delivery is none.
    if options.get("delivery", "") is None:
        del options["delivery"]
    if "delivery" in options or "background_options" in options:
        doors.background_options.check_rivals(checked, options)
    if options:
        checked["options"] = options


def _check_names(parameter: str, names: Iterable[str], tools: Iterable[SentTool]) -> None:
    known = [own for tool in tools if (own := _own_name(tool)) is not None]
    for name in names:
        if name not in known:
            listed = ", ".join(known) or "no function"
            raise RequestError(f"{parameter} names {name!r}, which is not among tools: {listed}")


def _own_name(tool: SentTool) -> str | None:
    """The name of a function, or of another tool that the user defines."""
    if isinstance(tool, str):
        return None
    candidates = (tool.get("function"), tool.get("custom"), tool)
    names = (candidate.get("name") for candidate in candidates if isinstance(candidate, Mapping))
    return next((name for name in names if isinstance(name, str)), None)


def describe_input(request: Any) -> Any:
    """The input of a request, as its result keeps it: a prompt, or the context of scores; else None."""
    messages = getattr(request, "messages", None)
    return describe_prompt(messages) if messages else getattr(request, "context", None)


def describe_prompt(messages: Sequence[Message]) -> str | list[Message] | None:
    """The messages as a response keeps them: a lone text of the user as it is, media without their data."""
    if len(messages) == 1 and messages[0]["role"] == "user" and type(messages[0]["content"]) is str:
        return messages[0]["content"]
    kept: list[Message] = []
    for message in messages:
        content = message.get("content")
        if isinstance(content, (list, tuple)):
            content = [part if part.get("type") == "text" else {"type": part.get("type")} for part in content]
            kept.append({**message, "content": content})
        else:
            kept.append(message)
    return kept or None


SHARED = tuple(CommonArguments.__dataclass_fields__)
"""The parameters that `call` has too, with the same meaning."""

DEFAULTS = frozenset({*SHARED, "upstream"}) - {"extra_body"}
"""The defaults of a client that `embed` uses. The fields in `extra_body` belong to one endpoint."""

_TEXT_CHECKS = {name: CHECKS[name] for name in (*SHARED, "upstream")}
_TEXT_CHECKS["dimensions"] = number(1, 2**31 - 1, whole=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class TextRequest(CommonArguments):
    model: str
    inputs: tuple[str, ...]

    max_tool_rounds: ClassVar[None] = None
    options: ClassVar[None] = None
    messages: ClassVar[tuple[JSONMapping, ...]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedRequest(TextRequest):
    """One call of `embed` as the user asked for it. `EmbedRequest.build` makes it."""

    dimensions: int | None = None
    upstream: str | None = None
    has_media: bool = False
    """Whether one of the inputs is `Contents`."""

    @classmethod
    def build(
        cls, model: str, inputs: Iterable[Any], parameters: EmbedParameters, function: str = "embed"
    ) -> EmbedRequest:
        """Check and normalise the arguments of `embed` or `aembed`. An empty list of texts is allowed."""
        check_model_name(model)
        checked = check_parameters(function, _TEXT_CHECKS, parameters)
        kind = type(inputs).__name__
        if isinstance(inputs, str):
            raise RequestError("inputs must be a list of texts, not one str: write embed(model, [text])")
        if isinstance(inputs, (set, frozenset)):
            # The vectors come in the order of the texts.
            raise RequestError(f"inputs is a {kind}, which has no order: pass a list")
        if isinstance(inputs, (bytes, bytearray, Mapping)) or not isinstance(inputs, Iterable):
            raise RequestError(f"inputs must be a list of texts, not {kind}: write embed(model, ['a text'])")
        if is_table(inputs):
            raise RequestError(f"inputs is a {kind}: give one column, as in embed(model, df['text'])")
        texts = tuple(_text(index, text) for index, text in enumerate(inputs))
        return cls(
            model=model, inputs=texts, has_media=any(type(text) is not str for text in texts), **checked
        )


def _text(index: int, text: object) -> str:
    if isinstance(text, str) and text:
        # The plain type: NumPy's str_ is a subclass.
        return text if type(text) is str else str.__str__(text)
    if isinstance(text, str):
        raise RequestError(f"inputs[{index}] is empty: providers refuse an empty text, so leave it out")
    first = text[0] if isinstance(text, (list, tuple)) and text else text
    if hasattr(type(first), "__index__"):
        raise RequestError(
            f"inputs[{index}] holds token ids; embed() takes texts: turn the tokens back into text, "
            "with tiktoken by encoding.decode(tokens)"
        )
    from .media import contents_of, is_medium

    listed = isinstance(text, (list, tuple)) and not all(isinstance(each, str) for each in text)
    if listed or isinstance(text, Mapping) or is_medium(text):
        contents = contents_of(text, f"inputs[{index}]")
        return contents or _text(index, contents)
    remedy = ": leave it out, as dropna() does" if is_missing(text) else ": write str(value)"
    raise RequestError(f"inputs[{index}] must be a str, not {cite(text)}{remedy}")


RequestT = TypeVar("RequestT", bound=CommonArguments)

# The SDKs would let these headers replace the API key, and send the headers for OpenAI to every host with its
# wire format. The library makes them `extra_headers` of the provider that the variable names: checked, and
# part of the cache key.
_VARIABLES = {"openai": "OPENAI_CUSTOM_HEADERS", "anthropic": "ANTHROPIC_CUSTOM_HEADERS"}


def adds_headers() -> bool:
    """Whether the environment has one of the variables. A client looks once, and not for every call."""
    return any(variable in os.environ for variable in _VARIABLES.values())


def read_headers(target: Target) -> dict[str, str]:
    """The headers that the environment adds to a request; `RequestError` for the library's own."""
    through_litellm = target.provider == "litellm"
    names = _VARIABLES.values() if through_litellm else filter(None, [_VARIABLES.get(target.provider)])
    headers = [_parse(name, os.environ.get(name, "")) for name in names]
    # litellm leaves them to the SDKs, so they are only checked.
    return dict(headers[0]) if headers and not through_litellm else {}


@functools.lru_cache(maxsize=8)
def _parse(variable: str, text: str) -> dict[str, str]:
    """The headers of a variable, a line for each. As in the SDKs, a line without a colon is ignored."""
    pairs = (line.partition(":") for line in text.split("\n") if ":" in line)
    return check_headers(variable, {name.strip(): value.strip() for name, _, value in pairs})


def with_headers(request: RequestT, target: Target) -> RequestT:
    """A request with the headers that the environment adds. The headers of the call replace them."""
    headers = read_headers(target)
    own = request.extra_headers or {}
    return replace(request, extra_headers={**headers, **own}) if headers else request
