"""The stored questions that a recheck can ask again, each exactly as it was sent.

The requests are made from the user's inputs and parameters, or taken from the cache, which does not hold all
of them in full. A request from the cache is used only if its key is that of the stored question.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import orjson

from .._cache.storage.entry import Entry, QuestionFields, lacks_text
from .._calls.call import Call
from .._calls.lifecycle.engine import Engine
from .._errors import LLMError, RequestError
from .._json_values import JSONMapping
from .._requests.attachments import UPLOAD_PREFIX
from .._runtime import clock
from .._runtime.canonical_json import canonical
from .._types.messages import Prompt
from .._types.response import Response, Result

FIRST_DRAW = 1_000_000_000
"""Answers from this draw on were asked by rechecks, and are no evidence of before."""

Prepare: TypeAlias = Callable[[str, Prompt, JSONMapping], Call[Response]]
"""Makes a call of a model and a prompt, with parameters that replace those of the user."""

_Stored: TypeAlias = tuple[str, Entry, QuestionFields]


@dataclass(frozen=True, slots=True)
class Selection:
    """Questions with the answers that are known, at least one for each, and why others are left out."""

    questions: list[tuple[Call[Response], Sequence[Response]]] = field(default_factory=list)
    unusable: Counter[str] = field(default_factory=Counter)


def at_draw(call: Call[Response], draw: int) -> Call[Response]:
    """A call of its own for another sample of the same question."""
    request = replace(call.request, draw=draw, n=1)
    return replace(call, request=request, parts=(draw,), first_key=None, started=clock.perf_counter())


def select_inputs(
    engine: Engine, prepare: Prepare, model: str, prompts: Iterable[Prompt], answers: Sequence[Result] | None
) -> Selection:
    """The questions of a user's inputs, with the answers that are given, else with those in the cache.

    Raises:
        RequestError: the model or a parameter is not valid, or there is another number of answers.
    """
    selection, keys, prompts = Selection(), set(), list(prompts)
    if answers is not None and len(answers) != len(prompts):
        raise RequestError(f"inputs has {len(prompts)} prompts, and there are {len(answers)} answers to them")
    for index, prompt in enumerate(prompts):
        call = prepare(model, prompt, {"max_tool_rounds": None})
        if answers is None:
            known = _read(engine, call, [engine.cache.peek(call.key(part)) for part in call.parts])
        else:
            result = answers[index]
            known = result.samples if isinstance(result, Response) else []
        if not known:
            selection.unusable["there is no stored answer" if answers is None else "their calls failed"] += 1
        elif (key := call.key(call.parts[0])) not in keys:
            keys.add(key)
            selection.questions.append((call, known))
    return selection


def select_stored(
    engine: Engine, prepare: Prepare, model: str | None, answers: Sequence[Result] | None
) -> Selection:
    """The stored questions of some answers, which are recognised by their replies, or all of a model.

    Raises:
        RequestError: the answers are of several models.
        OSError: the cache cannot be read.
    """
    samples = [each for result in answers or () if isinstance(result, Response) for each in result.samples]
    replies = {_digest(each.raw) for each in samples}

    def read(key: str, entry: Entry, question: QuestionFields) -> tuple[bytes, _Stored] | None:
        if question["draw"] >= FIRST_DRAW or (
            answers is None and model not in (question["model"], entry.served)
        ):
            return None
        if answers is not None and _digest(orjson.loads(entry.body)) not in replies:
            return None
        return canonical({**question, "draw": 0}), (key, entry, question)

    groups: dict[bytes, list[_Stored]] = {}
    for identity, stored in engine.cache.collect_answers(read):
        groups.setdefault(identity, []).append(stored)
    questions = [stored[0][2] for stored in groups.values()]
    names = {(each["model"], each["base_url"] or each["provider"]) for each in questions}
    if len(names) > 1:
        listed = ", ".join(f"{name} at {server}" for name, server in sorted(names))
        raise RequestError(f"the answers are of several models, {listed}: recheck those of each apart")
    selection = Selection()
    for group in groups.values():
        group.sort(key=lambda stored: stored[2]["draw"])
        call = _rebuild(prepare, *group[0])
        if isinstance(call, str):
            selection.unusable[call] += 1
        elif known := _read(engine, call, [entry for _, entry, _ in group]):
            selection.questions.append((call, known))
    if (missing := len(samples) - sum(map(len, groups.values()))) > 0:
        selection.unusable["their replies are not in this cache"] += missing
    return selection


def _rebuild(prepare: Prepare, key: str, _: Entry, question: QuestionFields) -> Call[Response] | str:
    """The call of a stored question, or why it cannot be made."""
    payload, body = question["payload"], canonical(question["payload"])
    if lacks_text(payload):
        return "the cache has a digest of a long text; give inputs="
    if _orders_fields(payload):
        return "the cache lacks the order of the fields of a schema; give inputs="
    if UPLOAD_PREFIX.encode() in body:
        return "they have uploaded files; give inputs="
    try:
        call = prepare(question["model"], "?", {"base_url": question["base_url"], "max_tool_rounds": None})
    except LLMError as error:
        return error.message
    encoded = replace(
        call.encoded,
        operation=question["operation"],
        payload=payload,
        labels=None,
        prefix=None,
        structure=None,
    )
    call = replace(call, request=replace(call.request, messages=()), encoded=encoded, body=body)
    if at_draw(call, question["draw"]).key(question["draw"]) != key:
        return "their headers or their server are not those of this client; give inputs="
    return call


def _read(engine: Engine, call: Call[Response], entries: Iterable[Entry | None]) -> list[Response]:
    """The responses of entries, without those that cannot be served."""
    pairs = [(entry, engine.decode_entry(call, entry)) for entry in entries if entry is not None]
    return [call.operation.restore(call, entry, answer, call.started) for entry, answer in pairs if answer]


def _orders_fields(payload: Any) -> bool:
    """Whether a payload has a schema in whose order models write. Tools are always sent in one order."""
    if isinstance(payload, Mapping):
        fields = payload.get("properties")
        return (isinstance(fields, Mapping) and len(fields) > 1) or any(
            _orders_fields(value) for name, value in payload.items() if name not in ("tools", "messages")
        )
    return isinstance(payload, list) and any(map(_orders_fields, payload))


def _digest(reply: object) -> bytes:
    return hashlib.sha256(canonical(reply)).digest()
