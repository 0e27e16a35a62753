"""The arguments of a call → `Request`. Invalid arguments raise here, before anything is sent."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict, cast, get_args

from .._errors import RequestError, shown
from .._limits.timeouts import Timeouts, patience_seconds, seconds
from .._runtime.frozen import quickly_made
from .._types import Message, Prompt
from .api_keys import APIKey

if TYPE_CHECKING:
    from decimal import Decimal

    from .._money.budget import Budget

ReasoningEffort: TypeAlias = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max", "default"]
Endpoint: TypeAlias = Literal["chat", "responses"]
CacheMode: TypeAlias = Literal["use", "refresh", "only", "off"]

_ROLES = ("system", "developer", "user", "assistant", "tool")
_MODEL_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,199}", re.ASCII)
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", re.ASCII)
_OWN_HEADERS = frozenset(
    {"authorization", "x-api-key", "x-goog-api-key", "api-key", "host", "content-length", "content-type",
     "transfer-encoding", "connection"}
)  # fmt: skip


class Parameters(TypedDict, total=False):
    """The parameters of `call`, `acall`, `stream` and `astream` besides the model and the messages.

    Names are OpenAI's where OpenAI has the parameter. None means "not set": nothing is sent for it.
    """

    system: str | None
    """A system prompt, which precedes the conversation."""
    max_tokens: int | None
    """The longest answer, in tokens, reasoning included. It is sent under the name that the model expects."""
    temperature: float | None
    """Randomness of the answer, from 0 to 2."""
    top_p: float | None
    """Only the most likely tokens that together have this probability are sampled, from 0 to 1."""
    stop: str | Sequence[str] | None
    """One or several texts before which the answer ends."""
    seed: int | None
    """A number with which providers sample more repeatably."""
    n: int | None
    """The number of samples. They are sent as separate calls where the provider has no such parameter.

    Samples of one prompt are numbered and stored one by one: after `n=4`, `n=10` sends six more."""
    draw: int | None
    """The number of the first sample, from 0. `draw=3` is the fourth sample and is stored apart from
    `draw=0`."""
    tools: Sequence[Mapping[str, Any]] | None
    """OpenAI-style tools: `{"type": "function", "function": {...}}`, and tools that the provider defines, in
    its own form, such as `{"google_search": {}}`."""
    tool_choice: str | Mapping[str, Any] | None
    """"auto", "none", "required", or `{"type": "function", "function": {"name": ...}}`."""
    response_format: Any
    """The structure of the answer: a type (a pydantic model, a dataclass, a TypedDict, `list[...]`, a union,
    `Literal`, an Enum, `int`, …), a JSON schema, or OpenAI's dict (`json_object` or `json_schema`)."""
    max_repairs: int | None
    """How often the model is asked again, with the reason, if its answer does not match `response_format`.
    Default 1; 0 never asks again."""
    reasoning_effort: ReasoningEffort | None
    """How much the model reasons before it answers. "default" is Groq's."""
    endpoint: Endpoint | None
    """The endpoint of OpenAI, or of a compatible server, that is asked: "chat" for Chat Completions or
    "responses" for Responses. Default the one that serves the model with these parameters."""
    logprobs: bool | None
    """Whether the answer has the log probabilities of its tokens."""
    top_logprobs: int | None
    """The number of alternatives per token that have log probabilities too, from 0 to 20."""
    strict_model: bool | None
    """Whether `ModelDriftError` is raised if another snapshot answers than before; default the client's."""
    timeout: float | Timeouts | None
    """Seconds for one attempt, without the time in the queue. `Timeouts` limits the connection, the first
    byte and pauses separately."""
    deadline: float | None
    """Seconds for the whole call, with all attempts, waits and the time in the queue; for a batch, seconds
    for all of its calls together."""
    max_retries: int | None
    """The most requests that are sent again after a failure that may be temporary."""
    outage_patience: float | None
    """Seconds that the call, or the whole batch, waits for a provider that is down. 0 fails at once, and
    `float("inf")` waits for ever. Default the client's: 60 for a call and 3,600 for a batch."""
    cache: CacheMode | bool | None
    """How the cache is used: "use" reads and stores, "refresh" sends and stores, "only" reads and never
    sends, "off" does neither. True and False mean "use" and "off"."""
    budget: float | Decimal | Budget | None
    """The most that the call, or the whole batch, may cost, in USD; or a `Budget`, which several calls can
    share. The client's own budget applies too."""
    extra_body: Mapping[str, Any] | None
    """Fields of this provider's API that are merged into the request's JSON."""
    extra_headers: Mapping[str, str] | None
    """HTTP headers that are added to the request."""
    api_key: str | None
    """The provider's API key; default one from the client's `keys` or the environment."""
    base_url: str | None
    """The server to send to; default the environment's, else the provider's own."""


class BatchParameters(Parameters, total=False):
    """The parameters of `call_many` and `iter_many` besides the model and the inputs."""

    max_concurrent: int | None
    """The most requests in flight at once; default the client's."""
    progress: bool | None
    """Whether a progress bar is shown; None shows it on a terminal and in a notebook."""


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
    tool_choice: str | Mapping[str, Any] | None = None
    response_format: Any = None
    max_repairs: int | None = None
    reasoning_effort: ReasoningEffort | None = None
    endpoint: Endpoint | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None
    strict_model: bool | None = None
    timeout: Timeouts | None = None
    deadline: float | None = None
    max_retries: int | None = None
    outage_patience: float | None = None
    cache: CacheMode | None = None
    budget: Budget | None = field(default=None, repr=False)
    extra_body: Mapping[str, Any] | None = None
    extra_headers: Mapping[str, str] | None = None
    api_key: APIKey | None = field(default=None, repr=False)
    base_url: str | None = None

    @classmethod
    def build(cls, model: str, messages: Prompt, parameters: Parameters) -> Request:
        """Check and normalise a call's arguments.

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
        checked = checked_parameters("call", _CHECKS, parameters)
        conversation = _conversation(messages)
        system = checked.pop("system", None)
        if system is not None:
            conversation = ({"role": "system", "content": system}, *conversation)
        if checked.get("top_logprobs") is not None and not checked.setdefault("logprobs", True):
            raise RequestError(
                "top_logprobs was given with logprobs=False; leave logprobs out or set it to True"
            )
        if checked.get("tool_choice") is not None and not checked.get("tools"):
            raise RequestError("tool_choice was given without tools; give tools=, or leave tool_choice out")
        return cls(model=model, messages=conversation, **checked)


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
        raise RequestError(f"{_shown(model)} is not a model name: expected something like 'gpt-6.1-sol'")


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
            raise TypeError(_unexpected(function, name, checks))
        if value is not None:
            checked[name] = check(name, value)
    return checked


def checked_inputs(inputs: Iterable[Prompt]) -> Iterable[Prompt]:
    """The inputs of a batch, unchanged.

    Raises:
        TypeError: the inputs are a single prompt, or not iterable.
    """
    if isinstance(inputs, (str, bytes, dict)) or not hasattr(inputs, "__iter__"):
        raise TypeError(
            f"inputs must be an iterable of prompts, such as a list, not {type(inputs).__name__}; "
            "a single prompt goes to call()"
        )
    return inputs


def _conversation(messages: Prompt) -> tuple[Message, ...]:
    if isinstance(messages, str):
        messages = ({"role": "user", "content": messages},)
    if not isinstance(messages, (list, tuple)):
        raise RequestError(f"messages must be a str or a list of messages, not {type(messages).__name__}")
    if not messages:
        raise RequestError("messages is empty; give at least one message")
    for index, message in enumerate(messages):
        where = f"messages[{index}]"
        if not isinstance(message, Mapping):
            kind = type(message).__name__
            raise RequestError(f"{where} must be a dict with 'role' and 'content', not {kind}")
        role = message.get("role")
        if role not in _ROLES:
            raise RequestError(f"{where} has role {_shown(role)}; expected one of {', '.join(_ROLES)}")
        _check_content(message, role, where)
    return tuple(messages)


def _check_content(message: Message, role: str, where: str) -> None:
    content = message.get("content")
    if content is None:
        # An answer may be empty, or have its content in other fields.
        if role != "assistant":
            raise RequestError(f"{where} has no content; give 'content' as a str or a list of parts")
    elif not isinstance(content, (str, list, tuple)):
        raise RequestError(f"{where}.content must be a str or a list of parts, not {type(content).__name__}")
    elif not content and role not in ("tool", "assistant"):
        raise RequestError(f"{where} has empty content; give some text or leave the message out")
    elif not isinstance(content, str):
        for position, part in enumerate(content):
            if not isinstance(part, Mapping) or not isinstance(part.get("type"), str):
                raise RequestError(f"{where}.content[{position}] must be a dict with a 'type'")
    if role == "tool" and not isinstance(message.get("tool_call_id"), str):
        raise RequestError(f"{where} has role 'tool' and needs the 'tool_call_id' it answers")


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise RequestError(f"{name} must be a non-empty str, not {_shown(value, name)}")
    return value


def _sealed(name: str, value: Any) -> APIKey:
    if isinstance(value, APIKey):
        return value
    # In a list and not in a variable of its own: if the key is invalid, the traceback shows this frame.
    given = [_text(name, value)]
    del value
    return APIKey(given.pop())


def number(low: float, high: float, *, whole: bool = False) -> Callable[[str, Any], float]:
    """A check for a parameter that is a number between two bounds, both of which it may equal."""
    kinds = (int,) if whole else (int, float)
    expected = f"an int from {low} to {high}" if whole else f"a number from {low:g} to {high:g}"

    def check(name: str, value: Any) -> float:
        # NaN and infinities fail the comparison too.
        if not isinstance(value, kinds) or isinstance(value, bool) or not low <= value <= high:
            raise RequestError(f"{name} must be {expected}, not {_shown(value)}")
        # JSON encoders refuse subclasses of float such as NumPy's float64.
        return int(value) if isinstance(value, int) else float(value)

    return check


def _timeout(name: str, value: Any) -> Timeouts:
    return value if isinstance(value, Timeouts) else Timeouts(total=seconds(name, value))


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise RequestError(f"{name} must be True or False, not {_shown(value)}")
    return value


def _mapping(name: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise RequestError(f"{name} must be a dict, not {type(value).__name__}")
    return dict(value)


def _extra_body(name: str, value: Any) -> Mapping[str, Any]:
    body = _mapping(name, value)
    if "stream" in body:
        # The provider would answer with events, and the call expects one JSON object.
        raise RequestError(f"{name} cannot set 'stream'; use stream() or astream()")
    return body


def _stop(name: str, value: Any) -> tuple[str, ...]:
    sequences = (value,) if isinstance(value, str) else value
    if not isinstance(sequences, (list, tuple)) or not all(isinstance(one, str) and one for one in sequences):
        raise RequestError(f"{name} must be a non-empty str or a list of them, not {_shown(value)}")
    return tuple(sequences)


def _tools(name: str, value: Any) -> tuple[Mapping[str, Any], ...]:
    if not isinstance(value, (list, tuple)):
        raise RequestError(f"{name} must be a list of tools, not {type(value).__name__}")
    for index, tool in enumerate(value):
        function = tool.get("function") if isinstance(tool, Mapping) else None
        if function is None and isinstance(tool, Mapping) and tool and tool.get("type") != "function":
            # A tool that its provider defines. The adapters know their own.
            continue
        if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
            raise RequestError(
                f"{name}[{index}] must look like {{'type': 'function', 'function': {{'name': ..., "
                "'parameters': ...}}"
            )
    return tuple(value)


def _tool_choice(name: str, value: Any) -> str | Mapping[str, Any]:
    if isinstance(value, str) and value in ("auto", "none", "required"):
        return value
    function = value.get("function") if isinstance(value, Mapping) else None
    if isinstance(function, Mapping) and isinstance(function.get("name"), str):
        return dict(value)
    if isinstance(value, Mapping) and value.get("type") in ("custom", "allowed_tools"):
        return dict(value)
    raise RequestError(
        f"{name} must be 'auto', 'none', 'required' or "
        f"{{'type': 'function', 'function': {{'name': ...}}}}, not {_shown(value)}"
    )


def _response_format(name: str, value: Any) -> Any:
    # Imported here because most calls have no format.
    from .._schemas.structure import checked

    return checked(name, value)


def _effort(name: str, value: Any) -> str:
    levels = get_args(ReasoningEffort)
    if value not in levels:
        raise RequestError(f"{name} must be one of {', '.join(levels)}, not {_shown(value)}")
    return str(value)


def _endpoint(name: str, value: Any) -> Endpoint:
    if not isinstance(value, str) or value not in get_args(Endpoint):
        raise RequestError(f"{name} must be 'chat' or 'responses', not {_shown(value)}")
    return cast("Endpoint", value)


def _cache(name: str, value: Any) -> CacheMode:
    if isinstance(value, bool):
        return "use" if value else "off"
    modes = get_args(CacheMode)
    if not isinstance(value, str) or value not in modes:
        raise RequestError(f"{name} must be one of {', '.join(modes)}, True or False, not {_shown(value)}")
    return cast("CacheMode", value)


def _budget(name: str, value: Any) -> Budget:
    # Imported here because most calls have no budget.
    from .._money.budget import Budget, amount_of

    return value if isinstance(value, Budget) else Budget(amount_of(value, name))


def _headers(name: str, value: Any) -> dict[str, str]:
    headers: dict[str, str] = {}
    for header, text in _mapping(name, value).items():
        if not isinstance(header, str) or not _HEADER_NAME.fullmatch(header):
            raise RequestError(f"{name} has {_shown(header)}, which is not a header name")
        if header.lower() in _OWN_HEADERS:
            raise RequestError(f"{name} cannot set {header!r}; an API key goes into api_key=")
        if not isinstance(text, str) or not text.isascii() or not text.isprintable():
            raise RequestError(f"{name}[{header!r}] must be printable ASCII text")
        headers[header.lower()] = text
    return headers


_CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "system": _text,
    "max_tokens": number(1, 2**31 - 1, whole=True),
    "temperature": number(0, 2),
    "top_p": number(0, 1),
    "stop": _stop,
    "seed": number(-(2**63), 2**63 - 1, whole=True),
    "n": number(1, 128, whole=True),
    "draw": number(0, 2**31 - 1, whole=True),
    "tools": _tools,
    "tool_choice": _tool_choice,
    "response_format": _response_format,
    "max_repairs": number(0, 10, whole=True),
    "reasoning_effort": _effort,
    "endpoint": _endpoint,
    "logprobs": _flag,
    "top_logprobs": number(0, 20, whole=True),
    "strict_model": _flag,
    "timeout": _timeout,
    "deadline": seconds,
    "max_retries": number(0, 1000, whole=True),
    "outage_patience": patience_seconds,
    "cache": _cache,
    "budget": _budget,
    "extra_body": _extra_body,
    "extra_headers": _headers,
    "base_url": _text,
    "api_key": _sealed,
}


def check(name: str, value: Any) -> Any:
    """Check and normalise one parameter as `Request.build` does. A client checks its defaults with it.

    Raises:
        RequestError: the value is invalid.

    >>> check("cache", True)
    'use'
    """
    return _CHECKS[name](name, value)


def _unexpected(function: str, name: str, checks: Iterable[str]) -> str:
    import difflib

    near = difflib.get_close_matches(name, checks, n=1)
    guess = f"; did you mean {near[0]!r}?" if near else ""
    return (
        f"{function}() got an unexpected parameter {name!r}{guess} "
        "(a parameter of one provider's API goes into extra_body=)"
    )


def _shown(value: Any, name: str = "") -> str:
    if name in ("api_key", "keys"):
        return type(value).__name__
    return shown(value)
