"""The arguments of a call → `Request`. Invalid arguments raise here, before anything is sent."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast, get_args

from .._errors import RequestError, shown
from .._limits.timeouts import Timeouts, patience_seconds, seconds
from .._runtime.canonical_json import canonical
from .._runtime.frozen import quickly_made
from .._types.messages import Message, Prompt
from .api_keys import APIKey, named_key
from .checks import CacheMode, Endpoint, InBatch, ReasoningEffort, flag, number, one_of, text

if TYPE_CHECKING:
    from .._money.budget import Budget
    from .parameters import Parameters

_ROLES = ("system", "developer", "user", "assistant", "tool")
_MODEL_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,199}", re.ASCII)
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", re.ASCII)
_OWN_HEADERS = frozenset(
    {"authorization", "x-api-key", "x-goog-api-key", "api-key", "host", "content-length", "content-type",
     "transfer-encoding", "connection"}
)  # fmt: skip


_OPTIONS = frozenset(
    {"top_k", "frequency_penalty", "presence_penalty", "logit_bias", "allowed_tools", "parallel_tool_calls",
     "thinking_budget", "reasoning_summary", "verbosity", "modalities", "safety_settings", "service_tier",
     "store", "previous_response_id", "prompt_caching", "prompt_cache_key", "user", "metadata", "unsupported",
     "reasoning_context", "cached_content"}
)  # fmt: skip
"""The parameters that few calls set. `Request.options` holds them, so that the other calls pay nothing."""


@quickly_made
@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
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
    tools: tuple[Mapping[str, Any], ...] | None = None
    max_tool_rounds: int | None = None
    tool_choice: str | Mapping[str, Any] | None = None
    response_format: Any = None
    max_repairs: int | None = None
    reasoning_effort: ReasoningEffort | None = None
    endpoint: Endpoint | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None
    options: Mapping[str, Any] | None = None
    """The parameters among `_OPTIONS` that are set, by name; None if there are none."""
    strict_model: bool | None = None
    timeout: Timeouts | None = None
    deadline: float | None = None
    max_retries: int | None = None
    outage_patience: float | None = None
    cache: CacheMode | None = None
    budget: Budget | None = field(default=None, repr=False)
    in_batch: InBatch | None = None
    extra_body: Mapping[str, Any] | None = None
    extra_headers: Mapping[str, str] | None = None
    api_key: APIKey | None = field(default=None, repr=False)
    base_url: str | None = None

    @classmethod
    def build(cls, model: str, messages: Prompt, parameters: Parameters, function: str = "call") -> Request:
        """Check and normalise the arguments of a call by the public function with this name.

        Raises:
            TypeError: a parameter does not exist.
            RequestError: a value is invalid; the message names the parameter.

        >>> Request.build("gpt-5.5", "Hi", {"stop": "END"}).stop
        ('END',)
        >>> Request.build("gpt-5.5", "Hi", {"temprature": 0})  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        TypeError: call() got an unexpected parameter 'temprature'; did you mean 'temperature'? ...
        """
        seal(parameters)
        check_model_name(model)
        checked = checked_parameters(function, CHECKS, parameters)
        conversation = _conversation(messages)
        if not _RELATED.isdisjoint(checked):
            conversation = _with_related(checked, conversation)
        if not _OPTIONS.isdisjoint(checked):
            from .options import gathered

            checked["options"] = gathered(_OPTIONS, checked)
        return cls(model=model, messages=conversation, **checked)


_RELATED = frozenset({"system", "top_logprobs", "tool_choice", "max_tool_rounds"})
"""Parameters that change the messages or need other parameters. Most calls have none of them."""


def _with_related(checked: dict[str, Any], conversation: tuple[Message, ...]) -> tuple[Message, ...]:
    """Check the parameters that need others. Returns the messages, with the system prompt before them."""
    if checked.get("top_logprobs") is not None and not checked.setdefault("logprobs", True):
        raise RequestError("top_logprobs was given with logprobs=False; leave logprobs out or set it to True")
    if checked.get("tool_choice") is not None and not checked.get("tools"):
        raise RequestError("tool_choice was given without tools; give tools=, or leave tool_choice out")
    if callable(checked.get("tool_choice")):
        from .options import chosen_tool

        checked["tool_choice"] = chosen_tool(checked["tool_choice"], checked["tools"])
    if "max_tool_rounds" in checked:
        from .tools import check_rounds

        check_rounds(checked)
    system = checked.pop("system", None)
    return conversation if system is None else ({"role": "system", "content": system}, *conversation)


def seal(parameters: Any) -> None:
    """Replace the API key among a call's arguments by an `APIKey`, in place.

    Every function that takes a key does this first. Tracebacks that show local variables, as in pytest and in
    error trackers, then show no key. For the same reason no local variable here holds the key.

    Raises:
        RequestError: the value cannot be a key.

    >>> parameters = {"api_key": "sk-secret"}
    >>> seal(parameters)
    >>> parameters
    {'api_key': APIKey(746b4ad1ca9129e1)}
    """
    if parameters.get("api_key") is not None:
        parameters["api_key"] = _sealed("api_key", parameters.pop("api_key"))


def check_model_name(model: Any) -> None:
    """Refuse what cannot be the name of a model.

    Raises:
        RequestError: it is not text, or holds characters that no model name has.
    """
    if not isinstance(model, str) or not _MODEL_NAME.fullmatch(model) or ".." in model or "//" in model:
        from .remedies import model_remedy

        raise RequestError(
            f"model: {shown(model)} is not a model name: expected something like 'gpt-6.1-sol'"
            f"{model_remedy(model)}"
        )


def checked_parameters(
    function: str, checks: Mapping[str, Callable[[str, Any], Any]], parameters: Mapping[str, Any]
) -> dict[str, Any]:
    """The parameters that are set, each checked and normalised.

    Args:
        function: The name of the function that the user called, for the message.
        checks: The check of each parameter that the function has.
        parameters: The user's values, by name. None means "not set".

    Raises:
        TypeError: a parameter that the function does not have.
        RequestError: a value that cannot be sent.
    """
    checked: dict[str, Any] = {}
    for name, value in parameters.items():
        check = checks.get(name)
        if check is None:
            from .foreign_names import unexpected

            raise TypeError(unexpected(function, name, checks))
        if value is not None:
            checked[name] = check(name, value)
    return checked


def _conversation(messages: Prompt) -> tuple[Message, ...]:
    if isinstance(messages, str):
        if not messages:
            raise RequestError("messages[0] has empty content; give some text or leave the message out")
        return ({"role": "user", "content": messages},)
    if not isinstance(messages, (list, tuple)):
        from .media import prompt_remedy

        kind = type(messages).__name__
        raise RequestError(
            f"messages must be a str or a list of messages, not {kind}{prompt_remedy(messages)}"
        )
    if not messages:
        raise RequestError("messages is empty; give at least one message")
    if any(not isinstance(one, Mapping) or "type" in one or "parts" in one for one in messages):
        # Imported here because most prompts are text.
        from .media import prompt_message
        from .sdk_messages import is_foreign, plain_messages

        if any(map(is_foreign, messages)):
            messages = plain_messages(messages)
        if any(not isinstance(one, Mapping) or ("type" in one and "role" not in one) for one in messages):
            messages = (prompt_message(messages),)
    return tuple([_checked(message, f"messages[{index}]") for index, message in enumerate(messages)])


def _checked(message: Message, where: str) -> Message:
    """A message, whose media are content parts.

    Raises:
        RequestError: it is no message, or has a content that cannot be sent.
    """
    role, content = message.get("role"), message.get("content")
    if role not in _ROLES:
        from .remedies import role_remedy

        expected = f"expected one of {', '.join(_ROLES)}"
        raise RequestError(f"{where} has role {shown(role)}; {expected}{role_remedy(role, _ROLES)}")
    if content is None:
        # An answer may be empty, or have its content in other fields.
        if role != "assistant":
            from .remedies import content_remedy

            remedy = content_remedy(message)
            raise RequestError(f"{where} has no content; give 'content' as a str or a list of parts{remedy}")
    elif not isinstance(content, (str, list, tuple)):
        message = _with_medium(message, content, where)
    elif not content and role not in ("tool", "assistant") and not (role == "user" and content == ""):
        raise RequestError(f"{where} has empty content; give some text or leave the message out")
    elif not isinstance(content, str) and not all(map(_is_part, content)):
        from .media import with_parts

        message = with_parts(message, where)
    if role == "tool" and not isinstance(message.get("tool_call_id"), str):
        raise RequestError(f"{where} has role 'tool' and needs the 'tool_call_id' it answers")
    calls = message.get("tool_calls") if role == "assistant" else None
    if calls is None:
        return message
    if not isinstance(calls, (list, tuple)):
        raise RequestError(
            f"{where}.tool_calls must be a list, not {shown(calls)}: write those of response.messages"
        )
    if all(isinstance(call, Mapping) for call in calls):
        return message
    from .sdk_messages import plain

    return {**message, "tool_calls": [plain(call) for call in calls]}


def _is_part(part: Any) -> bool:
    if not isinstance(part, Mapping):
        return False
    kind = part.get("type")
    if kind == "text":
        return isinstance(part.get("text"), str)
    return isinstance(kind, str) and kind != "image_url"


def _with_medium(message: Message, content: Any, where: str) -> Message:
    from .media import is_medium, with_parts

    if is_medium(content):
        return with_parts(message, where)
    from .remedies import content_remedy

    kind = type(content).__name__
    raise RequestError(
        f"{where}.content must be a str or a list of parts, not {kind}{content_remedy(message)}"
    )


def _sealed(name: str, value: Any) -> APIKey:
    if isinstance(value, APIKey):
        return value
    if value == "":
        raise RequestError(
            f"{name} is empty: leave it out to use the key of the environment, such as OPENAI_API_KEY, or "
            "pass the key"
        )
    # In a list and not in a variable of its own: if the key is invalid, the traceback shows this frame.
    given = [text(name, value)]
    del value
    return named_key(name, given)


def _timeout(name: str, value: Any) -> Timeouts:
    if isinstance(value, (tuple, list)):
        # As in requests: seconds for the connection, and until the server sends something.
        raise RequestError(
            f"{name} must be a number of seconds or Timeouts, not a {type(value).__name__}: "
            "write timeout=60, or Timeouts(connect=5, first_byte=60) for limits of their own"
        )
    return value if isinstance(value, Timeouts) else Timeouts(total=seconds(name, value))


def _mapping(name: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise RequestError(f"{name} must be a dict, not {type(value).__name__}: write {name}={{'name': ...}}")
    return dict(value)


def _extra_body(name: str, value: Any) -> Mapping[str, Any]:
    body = _mapping(name, value)
    if "stream" in body:
        # The provider would answer with events, and the call expects one JSON object.
        raise RequestError(f"{name} cannot set 'stream'; use stream() or astream()")
    try:
        canonical(body)
    except RequestError as error:
        problem = error.message.partition(": ")[2]
    else:
        return body
    raise RequestError(
        f"{name} must be a dict that JSON can hold, and {problem}: write numbers, texts, lists and dicts"
    )


def _stop(name: str, value: Any) -> tuple[str, ...]:
    sequences = (value,) if isinstance(value, str) else value
    if not isinstance(sequences, (list, tuple)) or not all(isinstance(one, str) and one for one in sequences):
        raise RequestError(f"{name} must be a non-empty str or a list of them, not {shown(value)}")
    return tuple(sequences)


def _tools(name: str, value: Any) -> tuple[Mapping[str, Any] | str, ...]:
    # Imported here because most calls have no tools.
    from .tools import checked_tools

    return checked_tools(name, value)


_CHOICES = {"auto": "auto", "none": "none", "required": "required", "any": "required"}
"""The words for a `tool_choice`, with the one that is sent: "any" is Anthropic's and Mistral's "required"."""


def _tool_choice(name: str, value: Any) -> Any:
    if isinstance(value, Mapping) and value.get("type") in _CHOICES and len(value) == 1:
        value = value["type"]
    if isinstance(value, str) and value in _CHOICES:
        return _CHOICES[value]
    if callable(value):
        # `_with_related` looks for it among the tools.
        return value
    if (
        isinstance(value, Mapping)
        and value.keys() == {"type", "name"}
        and value["type"] in ("function", "tool")
    ):
        # The forms of OpenAI's Responses API and of Anthropic.
        value = {"type": "function", "function": {"name": value["name"]}}
    function = value.get("function") if isinstance(value, Mapping) else None
    if isinstance(function, Mapping) and isinstance(function.get("name"), str):
        return dict(value)
    if isinstance(value, Mapping) and value.get("type") in ("custom", "allowed_tools"):
        return dict(value)
    raise RequestError(
        f"{name} must be 'auto', 'none', 'required', one of the tools (a function or a class), or "
        f"{{'type': 'function', 'function': {{'name': ...}}}}, not {shown(value)}"
    )


def _response_format(name: str, value: Any) -> Any:
    # Imported here because most calls have no format.
    from .._schemas.structure import checked

    return checked(name, value)


def _option(name: str, value: Any) -> Any:
    from .options import CHECKS

    return CHECKS[name](name, value)


_in_batch_word = one_of(InBatch)


def _in_batch(name: str, value: Any) -> str | None:
    word: str = _in_batch_word(name, value)
    return None if word == "live" else word


def _cache(name: str, value: Any) -> CacheMode:
    if isinstance(value, bool):
        return "use" if value else "off"
    modes = get_args(CacheMode)
    if not isinstance(value, str) or value not in modes:
        if isinstance(value, str) and "://" in value:
            # The URL may contain a password.
            raise RequestError(
                f"{name} of a call is a mode, {', '.join(modes)}: a URL belongs in Client(cache=...)"
            )
        raise RequestError(f"{name} must be one of {', '.join(modes)}, True or False, not {shown(value)}")
    return cast("CacheMode", value)


def _budget(name: str, value: Any) -> Budget:
    # Imported here because most calls have no budget.
    from .._money.budget import Budget, amount_of

    return value if isinstance(value, Budget) else Budget(amount_of(value, name))


def _headers(name: str, value: Any) -> dict[str, str]:
    headers: dict[str, str] = {}
    for header, content in _mapping(name, value).items():
        if not isinstance(header, str) or not _HEADER_NAME.fullmatch(header):
            raise RequestError(f"{name} has {shown(header)}, which is not a header name such as 'X-Team'")
        if header.lower() in _OWN_HEADERS:
            raise RequestError(f"{name} cannot set {header!r}; an API key goes into api_key=")
        if not isinstance(content, str) or not content.isascii() or not content.isprintable():
            kind = "a text with other characters" if isinstance(content, str) else type(content).__name__
            raise RequestError(f"{name}[{header!r}] must be printable ASCII text, not {kind}")
        headers[header.lower()] = content
    return headers


CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "system": text,
    "max_tokens": number(1, 2**31 - 1, whole=True),
    "temperature": number(0, 2),
    "top_p": number(0, 1),
    "stop": _stop,
    "seed": number(-(2**63), 2**63 - 1, whole=True),
    "n": number(1, 128, whole=True),
    "draw": number(0, 2**31 - 1, whole=True),
    "tools": _tools,
    "max_tool_rounds": number(0, 1000, whole=True),
    "tool_choice": _tool_choice,
    "response_format": _response_format,
    "max_repairs": number(0, 10, whole=True),
    "reasoning_effort": one_of(ReasoningEffort),
    "endpoint": one_of(Endpoint),
    "logprobs": flag,
    "top_logprobs": number(0, 20, whole=True),
    "strict_model": flag,
    "timeout": _timeout,
    "deadline": seconds,
    "max_retries": number(0, 1000, whole=True),
    "outage_patience": patience_seconds,
    "cache": _cache,
    "budget": _budget,
    "in_batch": _in_batch,
    "extra_body": _extra_body,
    "extra_headers": _headers,
    "base_url": text,
    "api_key": _sealed,
} | dict.fromkeys(_OPTIONS, _option)


def check(name: str, value: Any) -> Any:
    """Check and normalise one parameter as `Request.build` does. A client checks its defaults with it.

    Raises:
        RequestError: the value is invalid.

    >>> check("cache", True)
    'use'
    """
    return CHECKS[name](name, value)
