"""Any server that speaks OpenAI's formats: what is different, and what each host demands of a conversation.

The demands are rows with their sources. `shared.conversations` has what the formats demand. Replies and
chunks of OpenRouter and litellm are read here too, as any gateway may stand before them, and content in parts
as Mistral writes it: other hosts serve Mistral's models, as the rows of `_CHAT_RULES` say.
"""

import contextlib
import functools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import orjson

from ..._core.formats.openai import encode as openai
from ..._core.formats.openai_chat import decode as standard_replies
from ..._core.formats.openai_chat import stream as standard
from ..._core.formats.openai_chat.decode import KINDS, REASONING_FIELDS, Reading, dicts
from ..._core.formats.shared.conversations import (
    BEDROCK,
    CLAUDE,
    GEMINI,
    NAME,
    OPENAI_CHAT,
    ConversationRules,
    name_calls,
)
from ..._core.formats.shared.errors import error_fields, from_answer
from ..._core.formats.shared.replies import ABORTED, FINISH_WORDS, join_counts, part, reply_body, text_of
from ..._core.json_values import JSONMapping, JSONObject
from ..._core.types.messages import Delta, Step, ToolCall

# Ids: nearai/ironclaw#1241 (code 3280); as many calls as results: mistralai/client-python#234 (3230); roles
# in order: zed-industries/zed#37021, swarmauri/swarmauri-sdk#276, and mistral-common's validator, which also
# wants content or calls in an answer; names: its `FunctionName`.
MISTRAL = ConversationRules(
    ids="[a-zA-Z0-9]{9}", ids_once=True, names=f"{NAME}{{1,64}}", developer=False, answer_first=True,
    system_after="|system|user", empty_texts=False,
)  # fmt: skip

# Fields outside its schema are a 422, also where they are null: Gage-Technologies/mistral-go#2.
_MISTRAL_ITSELF = replace(MISTRAL, refused=frozenset({"refusal", "audio", "function_call"}))

# "unknown variant `developer`": earendil-works/pi#1048. Results are texts: Gitlawb/openclaude#774.
_DEEPSEEK = ConversationRules(developer=False, names=f"{NAME}{{1,64}}", text_results=True)

# With thinking, which is the default, calls need the field, and may have it empty: api-docs.deepseek.com,
# guides/thinking_mode; NousResearch/hermes-agent#15407.
_DEEPSEEK_V4 = replace(_DEEPSEEK, reasoning="")

# "with role 'assistant' must not be empty": lobehub/lobehub#8419; "text content is empty":
# dirge-code/dirge#757.
_MOONSHOT = ConversationRules(empty_texts=False)

# With calls, a missing or empty field is refused, and a blank is taken: theopenco/llmgateway#2093.
_KIMI = replace(_MOONSHOT, reasoning=" ")

# Missing with calls is refused: docs of platform.xiaomimimo.com, passing-back-reasoning_content.
_MIMO = ConversationRules(reasoning=" ")

# "property 'reasoning_content' is unsupported": Kilo-Org/kilocode#10375. It takes its own `reasoning`.
_CEREBRAS = ConversationRules(
    refused=frozenset({"reasoning_content", "reasoning_details", "thinking_blocks"})
)

# The names of providers and models, as `provider/model`, in the order in which they are tried. Behind litellm
# and OpenRouter stand the same models.
_CHAT_RULES = (
    (r"(openai|azure|litellm/(openai|azure))/.*", OPENAI_CHAT),
    (r"(litellm/)?mistral/.*", _MISTRAL_ITSELF),
    (r"(openrouter|litellm/\w+|nvidia_nim)/.*((mi(ni|x)?|magi|devi?)stral|codestral|pixtral).*", MISTRAL),
    (r"litellm/bedrock\w*/.*", BEDROCK),
    (r"(openrouter|litellm)/.*claude.*", CLAUDE),
    (r"(openrouter|litellm)/.*gemini.*", ConversationRules(names=GEMINI.names)),
    (r"(litellm/|openrouter/)*deepseek/deepseek-(v[4-9]|reasoner).*", _DEEPSEEK_V4),
    (r"(litellm/)?deepseek/.*", _DEEPSEEK),
    (r"(litellm/)?(moonshot|siliconflow)/.*kimi-(k2\.[5-9]|k[3-9]|k2-thinking).*", _KIMI),
    (r"(litellm/)?moonshot/.*", _MOONSHOT),
    (r"(litellm/)?xiaomi_mimo/.*", _MIMO),
    (r"(litellm/)?cerebras/.*", _CEREBRAS),
    # The error 1214 of Z.ai: vastsa/PI-Desktop#30; DeepInfra: earendil-works/pi#1578.
    (r"(litellm/)?(zai|deepinfra)/.*", ConversationRules(developer=False)),
    (r"(?s).*", ConversationRules()),
)


@functools.lru_cache(maxsize=1024)
def find_chat_rules(provider: str, model: str) -> ConversationRules:
    """The rules of a model behind Chat Completions.

    >>> find_chat_rules("mistral", "mistral-large-latest").answer_first
    True
    """
    name = f"{provider}/{model}".lower()
    return next(rules for pattern, rules in _CHAT_RULES if re.fullmatch(pattern, name))


# Types of parts that are not the name of a field, such as the type of Mistral's `ReferenceChunk`.
_PARTS = frozenset({"reference", "tool_reference", "image"})


def content_of(content: Any) -> Any:
    """The content of a message: a text, or a list of parts. Any other JSON is written as text.

    With JSON mode, Cloudflare's Workers AI returns the object itself.
    """
    return content if content is None or _are_parts(content) else reply_body(content).decode()


def _are_parts(content: Any) -> bool:
    if not isinstance(content, list) or not all(isinstance(entry, dict) for entry in content):
        return False
    types = [str(entry.get("type")) for entry in content]
    pairs = zip(content, types, strict=True)
    return not content or any("text" in entry or kind in entry or kind in _PARTS for entry, kind in pairs)


def read_content(content: Any) -> tuple[Any, str, str]:
    """A content that is no text, and its text and its reasoning, which Mistral's models return as parts."""
    content = content_of(content)
    if isinstance(content, str):
        return content, content, ""
    texts, thoughts = [], []
    for entry in dicts(content, "content"):
        if entry.get("type") == "thinking":
            inner = dicts(entry.get("thinking"), "thinking")
            thoughts += [text for piece in inner if (text := text_of(piece.get("text")))]
        elif text := text_of(entry.get("text")):
            texts.append(text)
    return content, "".join(texts), "".join(thoughts)


def kind_of(call: JSONMapping) -> str | None:
    """Which member of a call holds it: its type's, else the one that is not empty; None if none is yet.

    >>> kind_of({"custom": {"input": "", "name": ""}, "function": {"name": "weather"}})
    'function'
    """
    named = call.get("type")
    if named in KINDS and isinstance(call.get(named), dict):
        return str(named)
    bodies = {kind: call[kind] for kind in KINDS if isinstance(call.get(kind), dict)}
    return next((kind for kind, body in bodies.items() if not _is_blank(body)), None)


def _is_blank(body: JSONMapping) -> bool:
    return not (body.get("name") or body.get("arguments") or body.get("input"))


def read_calls(message: JSONMapping) -> tuple[tuple[ToolCall, ...], JSONObject]:
    """The calls of a message, and the fields of the message that hold them, without what is no call."""
    entries = [_in_standard_form(entry) for entry in dicts(message.get("tool_calls"), "tool_calls")]
    calls = [entry for entry in entries if entry is not None]
    names = name_calls(entry.get("id") for entry in calls)
    calls = [
        entry if entry.get("id") == name else {**entry, "id": name}
        for entry, name in zip(calls, names, strict=True)
    ]
    legacy = message.get("function_call")
    if isinstance(legacy, dict):
        legacy = None if _is_blank(legacy) else _with_text(legacy, "arguments")
    read, fields = standard_replies.read_calls({"tool_calls": calls, "function_call": legacy})
    if read and message.get("reasoning_content") == "":
        # DeepSeek needs it back as it was.
        fields = {"reasoning_content": "", **fields}
    return read, fields


def _in_standard_form(entry: JSONObject) -> JSONObject | None:
    """A call without the members of other kinds, with its arguments as text; None if it is no call."""
    kind = kind_of(entry)
    if kind is None or _is_blank(entry[kind]):
        bodies = [entry[name] for name in KINDS if name in entry]
        # A call whose members have no fields is malformed.
        return None if any(bodies) and all(isinstance(body, dict) for body in bodies) else entry
    others = [name for name in KINDS if name in entry and name != kind]
    body = _with_text(entry[kind], "input" if kind == "custom" else "arguments")
    if body is not entry[kind] or others:
        entry = {name: body if name == kind else value for name, value in entry.items() if name not in others}
    return entry


def _with_text(body: JSONObject, field: str) -> JSONObject:
    """The body of a call with its arguments as text, as the next request must have them."""
    text = arguments_of(body, field)
    return {**body, field: text} if isinstance(body.get(field), dict) else body


def arguments_of(body: JSONMapping, field: str) -> str:
    """The arguments of a call as text: some hosts send the object itself."""
    arguments = body.get(field)
    if arguments and isinstance(arguments, dict):
        return reply_body(arguments).decode()
    return standard_replies.arguments_of(body, field)


OWN_FIELDS = "provider_specific_fields"
"""What litellm adds to choices and to messages."""

NATIVE_WORDS = ("native_finish_reason", OWN_FIELDS)
"""Fields of a choice with the upstream's own word for its end: of OpenRouter, and of litellm."""

# Fields of the entries of a list whose text comes in pieces: reasoning of OpenRouter and of litellm.
_GROWING = ("text", "summary", "thinking")


def read_word(choice: JSONMapping) -> Any:
    """The word for the end of a choice; its error is raised, which OpenRouter writes beside it."""
    word = choice.get("finish_reason")
    if choice.get("error"):
        codes, explanation = error_fields(choice)
        raise from_answer(200, codes=codes, message=explanation)
    word = read_native_word(word, choice.get("native_finish_reason"), replaced=False)
    native = part(choice, OWN_FIELDS).get("native_finish_reason")
    return read_native_word(word, native, replaced=True)


def read_native_word(word: object, native: object, *, replaced: bool) -> Any:
    """The word of a gateway, or its upstream's word where the gateway took it for a whole answer's.

    OpenRouter has words of upstreams that are in no table, which say nothing, and litellm only those that it
    has `replaced` by "stop".

    >>> read_native_word("stop", "MAX_TOKENS", replaced=False), read_native_word("stop", "ok", replaced=False)
    ('MAX_TOKENS', 'stop')
    """
    if not (isinstance(native, str) and native) or word not in (None, "stop", "tool_calls"):
        return word
    meaning = "unknown" if replaced or native in ABORTED else "stop"
    return word if FINISH_WORDS.get(native.lower(), meaning) in ("stop", "tool_calls") else native


def collect_citation(extra: JSONObject, delta: JSONMapping) -> None:
    """Add a citation of Claude's, as litellm streams them, in the form that a whole answer has."""
    own = delta.get(OWN_FIELDS)
    if isinstance(own, dict) and own.get("citation"):
        kept = extra.setdefault(OWN_FIELDS, {"citations": [[]]})
        kept["citations"][0].append(own["citation"])


def add_entry(name: str, entries: list[Any], entry: Any) -> None:
    """Add an entry to a list, or the next piece of its last entry, which a signature ends."""
    if not isinstance(entry, dict):
        entries.append(entry)
        return
    entry = {name: value for name, value in entry.items() if value is not None}
    last = entries[-1] if entries else None
    same = (
        isinstance(last, dict)
        and last.get("type") == entry.get("type")
        and last.get("index") == entry.get("index")
        and ("id" not in entry or entry["id"] == last.get("id", entry["id"]))
        and any(name in last for name in _GROWING)
        and (any(name in entry for name in _GROWING) or "signature" in entry)
        and not last.get("signature")
    )
    if not same or last is None:
        entries.append(entry)
        return
    for field, value in entry.items():
        grows = field in _GROWING and isinstance(value, str) and isinstance(last.get(field), str)
        last[field] = last[field] + value if grows else value


class Call(standard.Call):
    """A call whose fragments a server may number in any way, and repeat."""

    __slots__ = ()
    kind_of = staticmethod(kind_of)
    arguments_of = staticmethod(arguments_of)
    add_entry = staticmethod(add_entry)

    def is_another(self, fragment: JSONObject, *, listed: bool) -> bool:
        """Whether a fragment begins another call: some hosts give all calls the same index, or none.

        `listed` says that it has no index and follows another one in the same list.
        """
        identifier, body = fragment.get("id"), fragment.get(self.kind or "")
        if not (self.name and isinstance(body, dict) and body.get("name")):
            return False
        if identifier and self.id:
            return bool(identifier != self.id)
        # Some hosts repeat the name in every fragment.
        begins = body["name"] != self.name or str(body.get("arguments", "")).lstrip().startswith("{")
        return listed or (begins and _is_object("".join(self.pieces)))

    def is_continued_by(self, fragment: JSONObject) -> bool:
        """Whether a fragment at an index of its own has arguments alone, which this call still lacks."""
        named = fragment.get("id") or any(part(fragment, kind).get("name") for kind in KINDS)
        return not named and not _is_object("".join(self.pieces))

    def _whole_arguments(self) -> str:
        written = "".join(pieces := [*filter(None, self.pieces)])
        if len(pieces) > 1 and (written == pieces[-1] * 2 or all(map(pieces[-1].startswith, pieces))):
            # Some hosts send all of the arguments so far in every fragment, or once more at the end.
            written = pieces[-1] if _is_object(pieces[-1]) else written
        return written


def _is_object(text: str) -> bool:
    with contextlib.suppress(ValueError):
        return isinstance(orjson.loads(text), dict)
    return False


_PLAIN_DELTA = frozenset({"index", "delta", "finish_reason"})


class Sample(standard.Sample):
    make_call = Call
    add_entry = staticmethod(add_entry)

    def add(self, piece: JSONObject) -> Step:
        delta = piece.get("delta")
        if not (_PLAIN_DELTA.issuperset(piece) and delta is not None and OWN_FIELDS not in delta):
            piece = self._in_standard_form(piece)
        return super().add(piece)

    def _in_standard_form(self, piece: JSONObject) -> JSONObject:
        for name in ("error", *NATIVE_WORDS):
            if piece.get(name):
                self.fields[name] = piece[name]
        if isinstance(piece.get("token_ids"), list):
            self.fields.setdefault("token_ids", []).extend(piece["token_ids"])
        # Some hosts send a sample that they did not stream as a whole message.
        delta = piece.get("delta") or piece.get("message") or piece.get("text") or {}
        piece = {**piece, "delta": delta}
        if isinstance(delta, dict):
            number = piece.get("logprobs")
            if number is not None and not isinstance(number, dict):
                # Together streams the log probability of each token as a bare number.
                named = {"tokens": delta.get("content"), "token_logprobs": number}
                named["token_ids"] = delta.get("token_id")
                piece["logprobs"] = {name: [value] for name, value in named.items()}
            collect_citation(self.extra, delta)
        return piece

    def _add_content(self, content: Any) -> tuple[str | None, str]:
        if content is None or type(content) is str:
            return super()._add_content(content)
        content, text, reasoning = read_content(content)
        if text or reasoning:
            self.content.append(content)
        return text, reasoning

    def _find_call(self, fragment: JSONObject, position: int) -> standard.Call:
        # Some hosts leave the index out, or give each call the index -1 or a text.
        given, identifier = fragment.get("index"), text_of(fragment.get("id")) or ""
        index, is_place = str(given or 0), type(given) is int and given >= 0
        call: Any = self.call_at.get((index, identifier)) or self.call_at.get((index, ""))
        last: Any = self.calls[-1] if self.calls else None
        if call is None and last is not None and last.is_continued_by(fragment):
            # Some hosts count the index up with every fragment.
            call = last
        if call is None or call.is_another(fragment, listed=position > 0 and not is_place):
            call = Call()
        self.call_at[index, ""] = self.call_at[index, identifier] = call
        return call  # type: ignore[no-any-return]  # a `Call`

    def _join_content(self) -> Any:
        return join_content(self.content)


class Assembler(standard.Assembler):
    make_sample = Sample
    HEAD = (
        *standard.Assembler.HEAD, "provider", "citations", "search_results", "metadata",
        "openrouter_metadata", "perf_metrics", "prompt_token_ids",
    )  # fmt: skip
    """The fields of OpenRouter, Perplexity, xAI, SGLang, Fireworks and vLLM too."""
    READ_IN_FULL = standard.Assembler.READ_IN_FULL | {
        "metadata", "openrouter_metadata", "perf_metrics", "prompt_token_ids"
    }  # fmt: skip

    def __init__(self) -> None:
        super().__init__()
        self._shown_late = False

    def _choices_of(self, event: Any) -> list[JSONObject]:
        if event is None:
            # Some upstreams write a null between their chunks.
            return []
        choices = super()._choices_of(event)
        if choices and "usage" in choices[0] and not event.get("usage"):
            # Moonshot's stands in the choice.
            self.usage = join_counts(self.usage, choices[0]["usage"])
        return choices

    def _show_late(self) -> Step:
        if self._shown_late or not self.samples or 0 in self.samples:
            return ""
        self._shown_late = True
        sample = self.samples[min(self.samples)]
        message = sample.choice()["message"]
        text, reasoning = message.get("content"), ""
        if not isinstance(text, str) and text is not None:
            _, text, reasoning = read_content(text)
        for name in REASONING_FIELDS:
            reasoning = reasoning or message.get(name, "")
        calls = tuple(call.whole() for call in sample.calls)
        text = text or message.get("refusal", "") or text_of(message.get("audio", {}).get("transcript")) or ""
        return Delta(text=text, reasoning=reasoning, tool_calls=calls)


def join_content(pieces: Sequence[Any]) -> Any:
    """The content of a message: a text, or parts as of Mistral's models, whose texts become parts too."""
    with contextlib.suppress(TypeError):
        return "".join(pieces) or None
    parts: list[Any] = []
    for piece in pieces:
        parts += piece if isinstance(piece, list) else [{"type": "text", "text": piece}]
    return _join_parts(parts)


def _join_parts(parts: Sequence[Any]) -> list[Any]:
    """Parts as a whole answer has them: pieces of one text, or of one thought, are one part."""
    runs: list[list[Any]] = []
    for entry in parts:
        if runs and _continues(runs[-1][-1], entry):
            runs[-1].append(entry)
        else:
            runs.append([entry])
    result = []
    for run in runs:
        merged = {name: value for entry in run for name, value in entry.items()} if len(run) > 1 else run[0]
        kind = merged.get("type") if isinstance(merged, dict) else None
        if kind == "text" and isinstance(merged.get("text"), str):
            merged = {**merged, "text": "".join(entry["text"] for entry in run)}
            if merged == {"type": "text", "text": ""}:
                continue
        elif kind == "thinking" and isinstance(merged.get("thinking"), list):
            merged = {
                **merged,
                "thinking": _join_parts([thought for entry in run for thought in entry["thinking"]]),
            }
        result.append(merged)
    return result


def _continues(last: Any, entry: Any) -> bool:
    """Whether a part is the next piece of the one before it. A signature ends a thought."""
    kind = entry.get("type") if isinstance(entry, dict) else None
    if kind not in ("text", "thinking") or not isinstance(last, dict) or last.get("type") != kind:
        return False
    form = str if kind == "text" else list
    both = isinstance(last.get(kind), form) and isinstance(entry.get(kind), form)
    return both and not last.get("signature") and not last.get("closed")


decode = partial(standard_replies.decode, reading=Reading(read_word, read_content, read_calls))

FUNCTIONS: Mapping[str, Mapping[str, Callable[..., Any]]] = {
    "openai": {
        "decode": partial(openai.decode, decode_chat=decode),
        "assembler": partial(openai.assembler, chat=Assembler),
    }
}
"""Adapter → the functions in the place of its own."""
