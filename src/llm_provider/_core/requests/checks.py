"""The words that parameters accept, and the checks of values. A check returns the value in its one form."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, TypedDict, TypeGuard, cast, get_args

from .. import doors
from ..errors import RequestError, cite
from ..json_values import JSONMapping, JSONObject, plain_number
from ..pace.call_limits import Timeouts, seconds
from ..runtime.json_pieces import canonical
from .api_keys import APIKey, make_key

if TYPE_CHECKING:
    from ..money.budget import Budget
    from .tools import SentTool

Check: TypeAlias = Callable[[str, object], Any]
"""Takes the name of a parameter and a value of the user's. It raises `RequestError` for a wrong value."""

ReasoningEffort: TypeAlias = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max", "default"]
ReasoningSummary: TypeAlias = Literal["auto", "concise", "detailed"]
ReasoningContext: TypeAlias = Literal["auto", "current_turn", "all_turns"]
Verbosity: TypeAlias = Literal["low", "medium", "high"]
Modality: TypeAlias = Literal["text", "audio", "image"]
ServiceTier: TypeAlias = Literal[
    "auto", "default", "flex", "priority", "scale", "fast", "ultrafast", "standard", "standard_only"
]
Unsupported: TypeAlias = Literal["raise", "drop"]
Endpoint: TypeAlias = Literal["chat", "responses", "interactions"]
InBatch: TypeAlias = Literal["live", "wait", "refuse"]
DeliveryMode: TypeAlias = Literal["live", "batch", "auto", "background"]
CallDelivery: TypeAlias = Literal["live", "background"]
CompletionWindow: TypeAlias = Literal["soonest", "2h", "8h"]
Resend: TypeAlias = Literal["batch", "live"]
ScoreMethod: TypeAlias = Literal["echo", "prompt_logprobs", "generate"]
DecideMethod: TypeAlias = Literal["native", "logprobs", "sampled"]
CacheMode: TypeAlias = Literal["use", "refresh", "only", "off"]
RateControl: TypeAlias = Literal["adaptive", "shared", "independent", "aimd"]
"""How the limit of a scope is found. "adaptive", "shared" and "independent" use `pace/controller`, which
the processes of a machine share from the first refusal on, from the first request on, or not at all. "aimd"
is the baseline for comparisons: only additive increase and multiplicative decrease."""


class BackgroundOptions(TypedDict, total=False):
    """How a background job of OpenAI is done."""

    completion_window: CompletionWindow
    """"soonest", the default, at the usual price; "2h" for 30 % and "8h" for 40 % less per token. OpenAI aims
    at an end within this time."""
    continuation_id: str
    """A name for jobs that follow each other, which OpenAI's queue then prefers."""


_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", re.ASCII)
_UPSTREAM = re.compile(r"[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*")
_OWN_HEADERS = frozenset(
    {"authorization", "x-api-key", "x-goog-api-key", "api-key", "host", "content-length", "content-type",
     "transfer-encoding", "connection"}
)  # fmt: skip

_MOST_FALLBACKS = 8
"""A longer list is rather one of models to compare."""

_CHOICES = {"auto": "auto", "none": "none", "required": "required", "any": "required"}
"""The words for a `tool_choice`, with the one that is sent: "any" is Anthropic's and Mistral's "required"."""


def number(low: float, high: float, *, whole: bool = False) -> Callable[[str, object], float]:
    """A check for a parameter that is a number between two bounds, or one of them."""
    expected = f"an int from {low} to {high}" if whole else f"a number from {low:g} to {high:g}"

    def check(name: str, value: object) -> float:
        plain = plain_number(value)
        # NaN and infinities fail the comparison too.
        if plain is None or (whole and isinstance(plain, float)) or not low <= plain <= high:
            remedy = doors.remedies.number_remedy(name, value, low, high, whole=whole)
            raise RequestError(f"{name} must be {expected}, not {cite(value)}{remedy}")
        # -0.0 equals 0.0, and is another text in JSON.
        return plain + 0

    return check


def text(name: str, value: object) -> str:
    if not isinstance(value, str) or not value:
        # An API key must not be shown.
        description = type(value).__name__ if name == "api_key" else cite(value)
        raise RequestError(
            f"{name} must be a non-empty str, not {description}{doors.remedies.text_remedy(name, value)}"
        )
    return value


def check_system(name: str, value: object) -> str | list[JSONMapping]:
    """A text, or Anthropic's form of several: a list of text parts, which may hold marks of a cache."""
    if isinstance(value, (list, tuple)) and value and all(map(_is_text_part, value)):
        return list(value)
    return text(name, value)


def _is_text_part(part: object) -> bool:
    return isinstance(part, Mapping) and part.get("type") == "text" and isinstance(part.get("text"), str)


def flag(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise RequestError(f"{name} must be True or False, not {cite(value)}")
    return value


def check_prompt_caching(name: str, value: object) -> object:
    if value == "explicit" or isinstance(value, bool):
        return value
    raise RequestError(f"{name} must be True, False or 'explicit', not {cite(value)}")


def one_of(words: object, other_names: Mapping[str, str | None] = MappingProxyType({})) -> Check:
    """A check for a parameter that is one of the words of a `Literal`. It gives a word its other name."""
    known = get_args(words)
    expected = f"{known[0]!r} or {known[1]!r}" if len(known) == 2 else f"one of {', '.join(known)}"

    def check(name: str, value: object) -> Any:
        if not isinstance(value, str) or value not in known:
            remedy = doors.remedies.word_remedy(name, value, known)
            raise RequestError(f"{name} must be {expected}, not {cite(value)}{remedy}")
        return other_names.get(value, str(value))

    return check


_bias, _whole_top_k = number(-100, 100), number(1, 2**31 - 1, whole=True)
_tokens = number(-1, 2**31 - 1, whole=True)
_count_of_errors = number(1, 2**31 - 1, whole=True)
check_in_batch = one_of(InBatch, {"live": None})
# Gemini's and Anthropic's words for the tier that OpenAI calls "default".
check_service_tier = one_of(ServiceTier, dict.fromkeys(("standard", "standard_only"), "default"))
check_delivery = one_of(CallDelivery, {"live": None})
_check_delivery, _check_resend = one_of(DeliveryMode), one_of(Resend)
_check_size = number(1, 1_000_000, whole=True)


def check_background(name: str, value: object) -> JSONMapping:
    """The options of a background job, with its completion window."""
    return doors.background_options.check_options(name, value)


class DeliveryOptions(NamedTuple):
    """The way of requests to their answers, and the most rows in one batch of a provider."""

    mode: DeliveryMode
    resend: Resend
    batch_size: int = sys.maxsize
    background: JSONMapping | None = None
    """The options of a background job; None for another way."""

    @classmethod
    def take_from(cls, parameters: Any, usual: DeliveryMode = "live", size: object = None) -> DeliveryOptions:
        """Remove the options from a function's parameters. `usual` is the mode if the user chooses none."""
        mode, resend = parameters.pop("delivery", None), parameters.pop("resend", None)
        mode = usual if mode is None else _check_delivery("delivery", mode)
        options = parameters.pop("background_options", None)
        if options is not None and mode != "background":
            doors.background_options.refuse_alone()
        if size is not None and mode in ("live", "background"):
            raise RequestError(
                "batch_size is for delivery='batch'; live requests are divided for you: write "
                "max_concurrent=... for the number in flight"
            )
        return cls(
            mode,
            "batch" if resend is None else _check_resend("resend", resend),
            sys.maxsize if size is None else int(_check_size("batch_size", size)),
            check_background("background_options", options or {}) if mode == "background" else None,
        )


def check_key(name: str, value: object) -> APIKey:
    if isinstance(value, APIKey):
        return value
    if value == "":
        raise RequestError(
            f"{name} is empty: leave it out to use the key of the environment, such as OPENAI_API_KEY, or "
            "pass the key"
        )
    # In a list and not in a variable of its own: if the key is invalid, the traceback shows this frame.
    texts = [text(name, value)]
    del value
    return make_key(name, texts)


def check_timeout(name: str, value: object) -> Timeouts:
    if isinstance(value, (tuple, list)):
        # As in requests: seconds for the connection, and until the server sends something.
        raise RequestError(
            f"{name} must be a number of seconds or Timeouts, not a {type(value).__name__}: "
            "write timeout=60, or Timeouts(connect=5, first_byte=60) for limits of their own"
        )
    return value if isinstance(value, Timeouts) else Timeouts(total=seconds(name, value))


def check_cache(name: str, value: object) -> CacheMode:
    if isinstance(value, bool):
        return "use" if value else "off"
    modes = get_args(CacheMode)
    if not isinstance(value, str) or value not in modes:
        if isinstance(value, str) and "://" in value:
            # The URL may contain a password.
            raise RequestError(
                f"{name} of a call is a mode, {', '.join(modes)}: a URL belongs in Client(cache=...)"
            )
        raise RequestError(f"{name} must be one of {', '.join(modes)}, True or False, not {cite(value)}")
    return cast("CacheMode", value)


def check_max_age(name: str, value: object) -> float:
    if hasattr(value, "total_seconds"):
        value = value.total_seconds()
    plain = plain_number(value)
    if plain is None or not 0 < plain <= sys.float_info.max:
        raise RequestError(
            f"{name} must be seconds above 0, or a timedelta such as timedelta(days=7), not {cite(value)}: "
            "cache='refresh' asks anew whatever is stored; leave it out for answers of any age"
        )
    return float(plain)


def check_fallback(name: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, (list, tuple)) or not all(isinstance(model, str) for model in value):
        raise RequestError(
            f"{name} must be a list of models, not {cite(value)}: write {name}=['claude-haiku-5-5']"
        )
    if not 0 < len(value) <= _MOST_FALLBACKS:
        raise RequestError(f"{name} must have from 1 to {_MOST_FALLBACKS} models, not {len(value)}")
    return tuple(value)


def check_budget(name: str, value: object) -> Budget:
    # Imported here because most calls have no budget.
    from ..money.budget import Budget, Unit, amount_of

    unit: Unit = "tokens" if name == "token_budget" else "USD"
    if not isinstance(value, Budget):
        return Budget(amount_of(value, name, unit), unit=unit)
    if value.unit != unit:
        other = "budget" if name == "token_budget" else "token_budget"
        raise RequestError(f"{name} takes a Budget in {unit}: give one in {value.unit} as {other}=")
    return value


def _dict(name: str, value: object, kind: str = "") -> dict[Any, Any]:
    if not isinstance(value, Mapping):
        remedy = "" if kind else f": write {name}={{'name': ...}}"
        raise RequestError(f"{name} must be a dict{kind}, not {type(value).__name__}{remedy}")
    return dict(value)


def check_extra_body(name: str, value: object) -> JSONObject:
    body = _dict(name, value)
    if "stream" in body:
        # The provider would answer with events, and the call expects one JSON object.
        raise RequestError(f"{name} cannot set 'stream'; use stream() or astream()")
    try:
        canonical(body)
    except RequestError as error:
        problem = error.message.partition(": ")[2]
        raise RequestError(
            f"{name} must be a dict that JSON can hold, and {problem}: write numbers, texts, lists and dicts"
        ) from None
    return body


def check_headers(name: str, value: object) -> dict[str, str]:
    headers: dict[str, str] = {}
    for header, content in _dict(name, value).items():
        if not isinstance(header, str) or not _HEADER_NAME.fullmatch(header):
            raise RequestError(f"{name} has {cite(header)}, which is not a header name such as 'X-Team'")
        if header.lower() in _OWN_HEADERS:
            raise RequestError(f"{name} cannot set {header!r}; an API key goes into api_key=")
        if not isinstance(content, str) or not content.isascii() or not content.isprintable():
            kind = "a text with other characters" if isinstance(content, str) else type(content).__name__
            raise RequestError(f"{name}[{header!r}] must be printable ASCII text, not {kind}")
        headers[header.lower()] = content
    return headers


def _are_texts(value: object) -> TypeGuard[Sequence[str]]:
    return isinstance(value, (list, tuple)) and all(isinstance(text, str) and text for text in value)


def check_stop(name: str, value: object) -> tuple[str, ...]:
    texts = [value] if isinstance(value, str) else value
    if not _are_texts(texts):
        raise RequestError(f"{name} must be a non-empty str or a list of them, not {cite(value)}")
    return tuple(texts)


def check_names(name: str, value: object) -> tuple[str, ...]:
    if not value or not _are_texts(value):
        raise RequestError(f"{name} must be a list of names such as ['search'], not {cite(value)}")
    return tuple(value)


def check_upstream(name: str, value: object) -> str:
    if not isinstance(value, str) or not _UPSTREAM.fullmatch(value):
        raise RequestError(
            f"{name} must be the name of a host, such as 'nebius' or 'nebius/fp8', not {cite(value)}"
        )
    return value


def check_tools(name: str, value: object) -> tuple[SentTool, ...]:
    # Imported here because most calls have no tools.
    from .tools import read_tools

    return read_tools(name, value)


def check_tool_choice(name: str, value: Any) -> object:
    form: JSONMapping = value if isinstance(value, Mapping) else {}
    word = form.get("type") if len(form) == 1 else value
    if isinstance(word, str) and word in _CHOICES:
        return _CHOICES[word]
    if callable(value):
        # `check_together` looks for it among the tools.
        return value
    kind = form.get("type")
    if "disable_parallel_tool_use" in form:
        rest = {field: form[field] for field in form if field != "disable_parallel_tool_use"}
        raise RequestError(f"{name}: write {name}={cite(rest)} and parallel_tool_calls=False")
    if form.keys() == {"type", "name"} and kind in ("function", "tool"):
        # The forms of OpenAI's Responses API and of Anthropic.
        value = form = {"type": "function", "function": {"name": form["name"]}}
    function = form.get("function")
    is_named = isinstance(function, Mapping) and isinstance(function.get("name"), str)
    if is_named or kind in ("custom", "allowed_tools"):
        return dict(form)
    raise RequestError(
        f"{name} must be 'auto', 'none', 'required', one of the tools (a function or a class), or "
        f"{{'type': 'function', 'function': {{'name': ...}}}}, not {cite(value)}"
    )


def check_response_format(name: str, value: object) -> object:
    # Imported here because most calls have no format.
    from ..schemas.structure import check_format

    return check_format(name, value)


def check_modalities(name: str, value: object) -> tuple[str, ...]:
    known = get_args(Modality)
    if not isinstance(value, (list, tuple)) or not value:
        raise RequestError(f"{name} must be a list such as ['text', 'audio'], not {cite(value)}")
    words = tuple(word.lower() if isinstance(word, str) else word for word in value)
    for word in words:
        if word not in known:
            remedy = doors.remedies.word_remedy(name, word, known)
            raise RequestError(f"{name} must be some of {', '.join(known)}, not {cite(word)}{remedy}")
    return words


def check_logit_bias(name: str, value: object) -> dict[str, float]:
    biases: dict[str, float] = {}
    for token, bias in _dict(name, value, " of token ids and numbers such as {1234: -100}").items():
        is_text = isinstance(token, str)
        if isinstance(token, bool) or not (
            (is_text and token.isdecimal()) or (not is_text and hasattr(token, "__index__") and token >= 0)
        ):
            raise RequestError(
                f"{name} has the key {cite(token)}, which is not the id of a token: write a number, such as "
                "tiktoken's encoding.encode(text)[0]"
            )
        biases[str(int(token))] = _bias(f"{name}[{token}]", bias)
    return biases


def check_safety_settings(name: str, value: object) -> tuple[dict[str, str], ...]:
    if isinstance(value, Mapping):
        value = [{"category": category, "threshold": threshold} for category, threshold in value.items()]
    if not isinstance(value, (list, tuple)):
        raise RequestError(
            f"{name} must be a dict or a list of dicts, such as "
            f"{{'HARM_CATEGORY_HARASSMENT': 'BLOCK_NONE'}}, not {type(value).__name__}"
        )
    value = [doors.sdk_messages.plain(setting) for setting in value]
    for index, setting in enumerate(value):
        fields = dict(setting) if isinstance(setting, Mapping) else {}
        if not {"category", "threshold"} <= fields.keys() or not all(
            isinstance(word, str) and word for word in fields.values()
        ):
            raise RequestError(
                f"{name}[{index}] must look like {{'category': 'HARM_CATEGORY_HARASSMENT', "
                f"'threshold': 'BLOCK_NONE'}}, not {cite(setting)}"
            )
    return tuple({key: str(word) for key, word in setting.items()} for setting in value)


def check_metadata(name: str, value: object) -> dict[str, str]:
    pairs = _dict(name, value, " of texts such as {'run': '7'}")
    # OpenAI's limits.
    if len(pairs) > 16:
        raise RequestError(f"{name} has {len(pairs)} pairs, and OpenAI takes 16")
    for key, content in pairs.items():
        if not isinstance(key, str) or not 0 < len(key) <= 64:
            raise RequestError(f"{name} has the key {cite(key)}: it must be a str of 1 to 64 characters")
        if not isinstance(content, str) or len(content) > 512:
            description = f"one of {len(content):,}" if isinstance(content, str) else cite(content)
            raise RequestError(f"{name}[{key!r}] must be a str of at most 512 characters, not {description}")
    return pairs


def check_top_k(name: str, value: object) -> float:
    # Google's type of it is a float.
    return _whole_top_k(name, int(value) if isinstance(value, float) and value.is_integer() else value)


def check_max_errors(name: str, value: object) -> float:
    plain = plain_number(value)
    if isinstance(plain, float) and 0 < plain < 1:
        return plain
    if isinstance(plain, float) or plain is None or plain <= 0:
        raise RequestError(
            f"{name} must be a number of inputs such as 10, or a share between 0 and 1 such as 0.05, not "
            f"{cite(value)}: 1 ends the batch at the first failure; leave it out for no end"
        )
    return _count_of_errors(name, plain)


def check_thinking_budget(name: str, value: object) -> float | str:
    return "adaptive" if value == "adaptive" else _tokens(name, value)
