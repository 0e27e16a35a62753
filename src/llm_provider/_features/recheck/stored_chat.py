"""Asks stored questions again: a chat whose payload is that of a cache entry."""

import contextlib
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Self

import orjson

from ..._core.errors import LLMError
from ..._core.formats.protocol import Adapter, EncodedRequest
from ..._core.journey.call import Call
from ..._core.journey.chat import Chat
from ..._core.json_values import JSONMapping
from ..._core.requests.request import Request
from ..._core.requests.routing import Target
from ..._core.runtime.canonical_json import canonical
from ..._core.store.response_cache import ResponseCache
from ..._core.types.response import Response

PARAMETERS = (
    "api_key", "base_url", "budget", "cache", "deadline", "draw", "extra_headers", "in_batch", "max_retries",
    "outage_patience", "strict_model", "timeout",
)  # fmt: skip
"""The parameters of a stored question that its payload does not have."""

_UPLOAD = b'"llm_provider:'
"""The beginning of the reference to a file, whose contents are not in the cache."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRequest(Request):
    """A request that is known by its payload."""

    question: JSONMapping

    @classmethod
    def build_stored(cls, model: str, question: JSONMapping, parameters: Any, function: str) -> Self:
        """Check the parameters that a stored question may have; those of its payload are left alone."""
        own: Any = {name: value for name, value in parameters.items() if name in PARAMETERS}
        built = Request.build(model, "?", own, function)
        known = Request.__dataclass_fields__.items()
        values = {name: getattr(built, name) for name, field in known if field.init}
        return cls(**{**values, "messages": (), "question": question})


class StoredChat(Chat):
    """A chat whose inputs are the questions of cache entries. Their payloads are sent as they are."""

    defaults = PARAMETERS
    build: Callable[..., Request] = staticmethod(StoredRequest.build_stored)

    def encode(self, request: Any, target: Target, adapter: Adapter) -> EncodedRequest:
        question = request.question
        return EncodedRequest(question["operation"], question["payload"], request.extra_headers or {})


STORED_CHAT = StoredChat()


def find_questions(
    cache: ResponseCache, keys: Iterable[str], model: str, draws: Container[int]
) -> Iterator[tuple[str, JSONMapping]]:
    """The keys and questions among `keys` to a model, with some numbers of samples."""
    for key in keys:
        question = (cache.peek_whole(key) or (None, None))[1]
        if question is not None and question["model"] == model and question["draw"] in draws:
            yield key, question


def find_stored(
    stored: Iterable[tuple[str, JSONMapping]], prepare: Callable[[JSONMapping], Call[Response]]
) -> Iterator[tuple[JSONMapping, Call[Response] | None]]:
    """Each question once, with the call of `prepare` that reads its answer; None if it cannot be asked so."""
    seen = set[bytes]()
    for key, question in stored:
        call: Call[Response] | None = None
        with contextlib.suppress(LLMError):
            call = prepare(question)
        if call is not None and (call.key(question["draw"]) != key or not _is_whole(question["payload"])):
            call = None
        # Samples of one question differ in the number alone.
        name = canonical({**question, "draw": 0})
        if name not in seen:
            seen.add(name)
            yield question, call


def _is_whole(payload: JSONMapping) -> bool:
    """Whether a payload in the order of the cache, which sorts, is the one that was sent.

    Models write the fields of a schema in its order, which is lost. Parameters of tools are sent sorted,
    unless there is such a schema.
    """
    answer = _count_fields({name: value for name, value in payload.items() if name != "tools"})
    return (not answer or max(answer, _count_fields(payload)) < 2) and _UPLOAD not in orjson.dumps(payload)


def _count_fields(value: Any) -> int:
    """The most fields of an object that a schema within JSON describes."""
    if isinstance(value, dict):
        fields = value.get("properties")
        own = len(fields) if isinstance(fields, dict) else 0
        return max([own, *map(_count_fields, value.values())])
    return max(map(_count_fields, value), default=0) if isinstance(value, list) else 0
