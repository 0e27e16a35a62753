"""Tool calls of a conversation, in the forms in which servers and models give them. Pure."""

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from ...errors import RequestError
from ...types.messages import Message, ToolCall
from .conversation_rules import ConversationRules


def name_calls(identifiers: Iterable[object]) -> list[str]:
    """The ids of the calls of one answer, each another. Some servers give none, or one twice.

    >>> name_calls(["call_a", None, "call_a", 7])
    ['call_a', 'call_1', 'call_a_2', '7']
    """
    names: list[str] = []
    for position, identifier in enumerate(identifiers):
        name = read_id(identifier) or f"call_{position}"
        while name in names:
            name = f"{name}_{position}"
        names.append(name)
    return names


def tell_apart(calls: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
    """The calls of one answer with the ids of `name_calls`."""
    names = name_calls(call.id for call in calls)
    return tuple(
        [call if call.id == name else replace(call, id=name) for call, name in zip(calls, names, strict=True)]
    )


def read_id(identifier: object) -> str:
    """An id as text; empty if there is none. Some servers number their calls."""
    if isinstance(identifier, str):
        return identifier
    return str(identifier) if isinstance(identifier, int) and not isinstance(identifier, bool) else ""


@dataclass(slots=True)
class SentCall:
    """A call of a conversation: its id and name as they are sent."""

    id: str
    name: str
    position: int
    """The number of the call in its answer."""
    written: str
    """Its id as its server gave it; empty if it gave none."""
    distinct: str
    """Its id in `tool_calls`, where `name_calls` has told equal ids apart."""
    wanted: str
    """The name that the model wrote."""
    kind: str = ""
    """What its result must be, where a format has several."""
    answered: bool = False


@dataclass(slots=True)
class SentCalls:
    """The calls of a conversation in their order. It finds the call that a result answers.

    `declared` are the names of the request's tools, which its provider takes.
    """

    rules: ConversationRules
    declared: Collection[str] = ()
    _answers: list[list[SentCall]] = field(default_factory=list)
    _used: set[str] = field(default_factory=set)

    def add_answer(self, calls: Iterable[tuple[object, str]], index: int) -> list[SentCall]:
        """The calls of the answer in `messages[index]`, each with its id and its name."""
        written = [(read_id(identifier), name) for identifier, name in calls]
        if not self.rules.ids_once:
            self._used.clear()
        distinct = name_calls(identifier for identifier, _ in written)
        answer = []
        for position, (identifier, name) in enumerate(written):
            sent, new = self.fit_id(identifier) if identifier else "", f"call_{index}_{position}"
            while not sent or sent in self._used:
                sent, new = self.fit_id(new), f"{new}_"
            self._used.add(sent)
            answer.append(
                SentCall(sent, self._fit_name(name), position, identifier, distinct[position], name)
            )
        self._answers.append(answer)
        return answer

    def find(self, identifier: object, name: object, where: str) -> SentCall | None:
        """The call that a result answers; None if no call has its id.

        A result without an id answers the first open call of the last answer: of the function `name`, if it
        names one. Raises `RequestError` if there is none.
        """
        wanted = read_id(identifier)
        if wanted:
            call = self._find_by_id(wanted, name)
        else:
            waiting = [call for call in self._answers[-1] if not call.answered] if self._answers else []
            waiting.sort(key=lambda call: (call.wanted != name, bool(call.written)))
            if not waiting:
                raise RequestError(f"{where} has no tool_call_id, and no call before it waits for a result")
            call = waiting[0]
        if call is not None:
            call.answered = True
        return call

    def _find_by_id(self, wanted: str, name: object) -> SentCall | None:
        """The newest call with an id: an open one before an answered one."""
        answered = None
        for answer in reversed(self._answers):
            same = [call for call in answer if wanted in (call.distinct, call.written)]
            same.sort(key=lambda call: (call.answered, call.wanted != name, call.distinct != wanted))
            if same and not same[0].answered:
                return same[0]
            answered = answered or (same[0] if same else None)
        return answered

    def fit_id(self, identifier: str) -> str:
        """An id in the form that the provider takes. Equal ids give equal ones."""
        if self.rules.takes_id(identifier):
            return identifier
        mended = re.sub(r"[^a-zA-Z0-9_-]", "_", identifier)
        if self.rules.takes_id(mended):
            return mended
        digest = hashlib.sha256(identifier.encode(errors="surrogatepass")).hexdigest()
        return next(fit for fit in (f"call_{digest[:32]}", digest[:9]) if self.rules.takes_id(fit))

    def _fit_name(self, name: str) -> str:
        """The name of a function, which the model may have made up, in the form that the provider takes."""
        if name in self.declared or self.rules.takes_name(name):
            return name
        mended = re.sub(r"[^a-zA-Z0-9_-]", "_", name)[:64]
        return mended if self.rules.takes_name(mended) else f"_{mended}"[:64]


def calls_of(message: Message) -> Sequence[Any]:
    """The calls of an assistant message, also in OpenAI's form before `tool_calls`, which has no ids."""
    calls, legacy = message.get("tool_calls"), message.get("function_call")
    if not calls and isinstance(legacy, Mapping):
        return ({"id": "", "type": "function", "function": legacy},)
    return calls or ()


def function_of(call: object) -> Any:
    """The function that a call names. The text that a custom tool takes is the argument `input` of one."""
    if not isinstance(call, Mapping):
        return None
    custom = call.get("custom")
    if isinstance(custom, Mapping):
        text = orjson.dumps({"input": custom.get("input")}).decode()
        return {"name": custom.get("name"), "arguments": text}
    return call.get("function")
