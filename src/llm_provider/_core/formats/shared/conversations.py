"""What each provider demands of a conversation that is sent back to it: one row for each, with its source.

A conversation may come from any route, and from models that make up names and write broken JSON. The
encoders change what its provider would refuse, and nothing else. Beside these rows a `Route` says which
parts and which fields of answers its host takes.
"""

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from ...errors import RequestError
from ...json_values import JSONMapping, JSONObject
from ...runtime.json_pieces import read_exactly, replace_halves, write_exactly
from ...runtime.warning import warn_user
from ...types.messages import Message, ToolCall


@dataclass(frozen=True, slots=True)
class ConversationRules:
    """What one provider demands. The default is what every server takes.

    Attributes:
        ids: The form of a call's id, as a pattern.
        ids_once: Whether an id may stand for one call only in the whole conversation. Within one answer no
            server takes an id twice.
        names: The form of a function's name, as a pattern.
        any_arguments: Whether the arguments of a call may be any text, and not only a JSON object.
        typed_calls: Whether each call must have its `type`.
        developer: Whether there is a role "developer", and not only "system".
        old_functions: Whether the form before `tool_calls` is taken: `function_call` and the role "function".
        answer_first: Whether an answer must stand between the result of a tool and a message of the user.
        system_after: The roles after which a system message may stand. Another becomes the user's.
        reasoning: What stands for the `reasoning_content` that a message with calls must have; None where it
            need not have one. Where it is not empty, an empty one is refused.
        empty_texts: Whether an answer may be empty, and a part of text.
        text_results: Whether the result of a tool must be a text, and not a list of texts.
        refused: Fields of answers that are refused, beside the row's in `Route.output_only`.
    """

    ids: str = r"(?s:.)+"
    ids_once: bool = False
    names: str = r"(?s:.)+"
    any_arguments: bool = False
    typed_calls: bool = False
    developer: bool = True
    old_functions: bool = False
    answer_first: bool = False
    system_after: str = r"\w*"
    reasoning: str | None = None
    empty_texts: bool = True
    text_results: bool = False
    refused: frozenset[str] = frozenset()


NAME, _NO_LETTER = "[a-zA-Z0-9_-]", "[^a-zA-Z0-9_-]"

# API reference of OpenAI for names; the error's own words for ids: microsoft/autogen#6377. Raw arguments are
# taken as they are. `type` is required in the types of the openai SDK, as is `ToolMessage.tool_call_id`.
OPENAI_CHAT = ConversationRules(
    ids=r"(?s:.){1,40}", names=f"{NAME}{{1,64}}", any_arguments=True, typed_calls=True, old_functions=True
)

# Ids: decolua/9router#393; names: diegosouzapw/OmniRoute#4317. An id that two items have is refused as
# "Duplicate item": anomalyco/opencode#32748, and as "Duplicate 'call_id'": earendil-works/pi#9057.
RESPONSES = ConversationRules(
    ids=r"(?s:.){1,64}", ids_once=True, names=f"{NAME}{{1,128}}", any_arguments=True
)

# "`tool_use` ids must be unique": BerriAI/litellm#23510, NVIDIA-NeMo/Switchyard#502. The pattern of ids:
# maximhq/bifrost#5097, of the names of tools: home-assistant/core#147760; empty texts: BerriAI/litellm#22979.
CLAUDE = ConversationRules(
    ids=f"{NAME}+", ids_once=True, names=f"{NAME}{{1,128}}", empty_texts=False
)  # fmt: skip

# The Converse API's reference for ToolUseBlock, which the other APIs of Bedrock follow; names of earlier
# calls: pydantic/pydantic-ai#4585; duplicate ids: bvcyber/Cyber-AutoAgent-ng#72.
BEDROCK = ConversationRules(
    ids=f"{NAME}{{1,64}}", ids_once=True, names=f"{NAME}{{1,64}}", empty_texts=False
)  # fmt: skip

# The error's own words for names: google-gemini/gemini-cli#9535. Ids are optional and free. A system message
# inside the conversation has no form.
GEMINI = ConversationRules(names=r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}", system_after="")

# The names are Gemini's. A result names its call by the id alone: `FunctionResultStep` of google-genai 3.6.
INTERACTIONS = ConversationRules(names=GEMINI.names, system_after="", ids_once=True)


# --- tool calls, in the forms in which servers and models give them


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
    if not calls:
        return ()
    names = zip(calls, name_calls(call.id for call in calls), strict=True)
    return tuple([call if call.id == name else replace(call, id=name) for call, name in names])


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
        wanted, matches = read_id(identifier), list[SentCall]()
        # The newest call with the id: an open one before an answered one.
        for answer in reversed(self._answers) if wanted else ():
            same = [call for call in answer if wanted in (call.distinct, call.written)]
            same.sort(key=lambda call: (call.answered, call.wanted != name, call.distinct != wanted))
            matches += same[:1]
            if same and not same[0].answered:
                break
        if not wanted:
            matches = [call for call in self._answers[-1] if not call.answered] if self._answers else []
            matches.sort(key=lambda call: (call.wanted != name, bool(call.written)))
            if not matches:
                raise RequestError(f"{where} has no tool_call_id, and no call before it waits for a result")
        call = next((call for call in matches if not call.answered), matches[0] if matches else None)
        if call is not None:
            call.answered = True
        return call

    def fit_id(self, identifier: str) -> str:
        """An id in the form that the provider takes. Equal ids give equal ones."""
        if re.fullmatch(self.rules.ids, identifier):
            return identifier
        digest = hashlib.sha256(identifier.encode(errors="surrogatepass")).hexdigest()
        fits = (re.sub(_NO_LETTER, "_", identifier), f"call_{digest[:32]}", digest[:9])
        return next(fit for fit in fits if re.fullmatch(self.rules.ids, fit))

    def _fit_name(self, name: str) -> str:
        """The name of a function, which the model may have made up, in the form that the provider takes."""
        if name in self.declared or re.fullmatch(self.rules.names, name):
            return name
        mended = re.sub(_NO_LETTER, "_", name)[:64]
        return mended if re.fullmatch(self.rules.names, mended) else f"_{mended}"[:64]


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


# --- content of an earlier answer that the provider has no form for
#
# It is left out of the request, and a `UserWarning` names it. The text of a warning names no message, so
# Python's default filter shows each kind of content once.

# The fields of an assistant message that every format sends, or whose content is in another field as well.
_SENT = frozenset({"role", "content", "refusal", "tool_calls", "function_call", "prefix"})

# The types of blocks and items whose content is in `content`, `refusal` or `tool_calls` as well.
_IN_THE_MESSAGE = frozenset(
    {"text", "tool_use", "message", "function_call", "output_text", "refusal", "model_output"}
)

# The same for the fields of Gemini's parts. A thought is also a text.
_IN_THE_MESSAGE_OF_GEMINI = frozenset({"text", "functionCall", "thought"})

_NOTES = ("citations", "annotations")

# A lone half of a surrogate pair, as JSON writes it: anthropics/claude-code#3277.
_HALF = re.compile(
    r"\\u[dD][89abAB]\w\w(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB]\w\w)\\u[dD][c-fC-F]\w\w", re.ASCII
)


def warn_of_lost_content(message: Message, provider: str, *, own: str = "") -> None:
    """Warn of the content of an assistant message that only the provider which gave it accepts.

    `own` is the provider of this format's answers, which come here outdated: a user has changed them.
    """
    kinds = set[str]()
    for name, value in message.items():
        if name == "provider_specific_fields":
            if isinstance(value, Mapping) and value.get("provider") != own:
                kinds.update(_list_kinds(value.get("content")))
        elif value and name not in _SENT:
            kinds.add(name)
    for kind in sorted(kinds):
        _warn(f"an earlier answer holds {kind}", provider)


def warn_of(what: str, provider: str) -> None:
    """Warn that something in a message or a tool, which does not change what it says, is left out."""
    _warn(f"a message or a tool holds {what}", provider)


def warn_of_empty_turn(provider: str) -> None:
    """Warn that an assistant message is left out because nothing in it can be sent."""
    _warn("an earlier answer is empty", provider)


def own_content(message: Message, provider: str) -> Any:
    """What a provider's answer held in its own form, as the message of the answer keeps it; else None."""
    kept = message.get("provider_specific_fields")
    return kept.get("content") if isinstance(kept, Mapping) and kept.get("provider") == provider else None


def content_of(message: Message) -> Any:
    """The content of an answer, or the transcript of one that was spoken."""
    content, audio = message.get("content"), message.get("audio")
    if content or not isinstance(audio, Mapping):
        return content
    transcript = audio.get("transcript")
    return transcript if isinstance(transcript, str) else content


EMPTY_TEXT = "has empty content; give some text or leave the message out"
"""The error for a user's message without text, which only Chat Completions takes."""


def parse_arguments(text: Any, provider: str) -> JSONObject:
    """The arguments of a call, which may be JSON of any form, as an object.

    A model may write arguments that are no object, and an answer that was cut may end inside them. They are
    sent as the only field of an object, because a result may follow the call.
    """
    text = write_arguments(text, any_text=True)
    try:
        arguments = read_exactly(text or "{}")
    except (ValueError, RecursionError):
        arguments = None
    if isinstance(arguments, dict):
        if _HALF.search(text):
            return dict(json.loads(replace_halves(json.dumps(arguments, ensure_ascii=False))))
        return arguments
    warn_user(
        f"the arguments of an earlier tool call are not a JSON object, which {provider} needs: "
        "they are sent as the text of a field 'arguments'",
    )
    return {"arguments": text}


def write_arguments(arguments: Any, *, any_text: bool) -> str:
    """The arguments of a call as text: of a JSON object, unless the host takes `any_text`."""
    if arguments is None or (arguments == "" and not any_text):
        return "{}"
    plain = dict(arguments) if isinstance(arguments, Mapping) else arguments
    text: str = plain if isinstance(plain, str) else write_exactly(plain).decode()
    if any_text:
        return text
    parsed = parse_arguments(text, "the host")
    is_sent = parsed != {"arguments": text} and not _HALF.search(text)
    return text if is_sent else write_exactly(parsed).decode()


def with_object(block: JSONMapping, provider: str) -> JSONObject:
    """A block of Anthropic's. The input of a call of a tool is an object, as `parse_arguments` makes it."""
    if block.get("type") != "tool_use" or isinstance(block.get("input"), dict):
        return dict(block)
    return {**block, "input": parse_arguments(block.get("input"), provider)}


def warn_of_late_system(provider: str) -> str:
    """Warn of a system message where a provider takes none, and give the role in which it is sent."""
    warn_user(
        f"a system message stands inside the conversation, where {provider} takes none: it is sent as the "
        "user's",
    )
    return "user"


def _warn(what: str, provider: str) -> None:
    problem = f"{what}, for which {provider} has no form here: it is left out of the request"
    warn_user(problem)


def _list_kinds(content: object) -> Iterator[str]:
    if isinstance(content, Mapping):
        yield from content
    for entry in content if isinstance(content, list) else ():
        if not isinstance(entry, Mapping):
            continue
        kind = entry.get("type")
        if not isinstance(kind, str):
            yield from entry.keys() - _IN_THE_MESSAGE_OF_GEMINI
            if entry.get("thought"):
                yield "thought"
        elif kind not in _IN_THE_MESSAGE:
            yield kind
        inner = entry.get("content")
        for piece in (entry, *(inner if isinstance(inner, list) else ())):
            if isinstance(piece, Mapping):
                yield from (name for name in _NOTES if piece.get(name))


def drop_detail(messages: Sequence[Any]) -> tuple[Any, ...]:
    """Messages whose images have no `detail`, which is the resolution at which a model looks at them."""
    return tuple([
        {**message, "content": [_plain_image(part) for part in message["content"]]}
        if isinstance(message.get("content"), (list, tuple)) else message
        for message in messages
    ])  # fmt: skip


def _plain_image(part: JSONMapping) -> JSONMapping:
    image = part.get("image_url")
    return {**part, "image_url": {**image, "detail": None}} if isinstance(image, Mapping) else part
