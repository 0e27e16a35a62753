"""Streams of the Chat Completions format → the completion that they add up to. Pure."""

from __future__ import annotations

import contextlib
from typing import Any

import orjson

from ...errors import APIResponseValidationError
from ...json_values import JSONMapping, JSONObject
from ...types.messages import Delta, Step, ToolCallDelta
from ..shared.errors import error_in
from ..shared.replies import expect_dict, join_counts, join_steps, number_step, part, text_of
from ..transport.sse import END
from .decode import (
    KINDS,
    REASONING_FIELDS,
    arguments_of,
    content_of,
    dicts,
    join_content,
    kind_of,
    text_and_reasoning,
)
from .text_chunk import TextChunks

_MOST_ENTRIES = 10_000

# `citations` and `search_results` are the pages that Perplexity's and xAI's models have found.
_HEAD = (
    "id", "model", "created", "service_tier", "system_fingerprint", "provider", "citations", "search_results",
    "metadata", "openrouter_metadata", "perf_metrics", "prompt_token_ids", "x_groq",
)  # fmt: skip

# Fields of a delta that have code of their own, and those that are the same in every answer.
_KNOWN = frozenset(
    {"role", "content", "refusal", "tool_calls", "function_call", "audio", "provider_specific_fields"}
    | set(REASONING_FIELDS)
)

# Fields of a choice with the upstream's own word for its end: of OpenRouter, and of litellm.
_NATIVE = ("native_finish_reason", "provider_specific_fields")

# Fields of the entries of a list whose text comes in pieces: reasoning of OpenRouter and of litellm.
_GROWING = ("text", "summary", "thinking")


class Assembler:
    """Folds chat completion chunks into the completion that they add up to."""

    def __init__(self) -> None:
        self._head: JSONObject = {}
        self._usage: Any = None
        self._samples: dict[int, _Sample] = {}
        self._content: list[Any] | None = None
        """The content of the first sample."""
        self._read_text = TextChunks().read
        self._done = self._failed = False

    def feed(self, event: Any) -> Step:
        content = self._content
        if content is not None and (text := self._read_text(event)) is not None:
            content.append(text)
            return text
        if event is END:
            self._done = True
            return self._samples[0].show_refusal() if 0 in self._samples else self._show_late()
        steps = []
        for piece in self._choices_of(event):
            index = _index(piece)
            step = self._sample(index).add(piece)
            if index == 0:
                steps.append(step)
            elif piece.get("finish_reason"):
                steps.append(self._show_late())
        return steps[0] if len(steps) == 1 else join_steps(steps)

    def feed_samples(self, event: Any) -> list[Step]:
        if event is END:
            self._done = True
            return [number_step(sample.show_refusal(), index) for index, sample in self._samples.items()]
        pieces = [(_index(piece), piece) for piece in self._choices_of(event)]
        return [number_step(self._sample(index).add(piece), index) for index, piece in pieces]

    def _choices_of(self, event: Any) -> list[JSONObject]:
        """The choices of a chunk, whose other fields are kept."""
        if event is None:
            # Some upstreams write a null between their chunks.
            return []
        event = expect_dict(event, "stream event")
        failure = error_in(event, "choices")
        if failure is not None:
            # Finish words before it belong to a part: a whole body with a failure is no answer either.
            self._failed = True
            raise failure
        for name in _HEAD:
            value = event.get(name)
            # The chunks of Azure's content filter have the id "" and the model "".
            if value or (value is not None and name not in self._head):
                # Groq's first chunk has other fields than its last one, also within `debug`.
                if name == "x_groq":
                    _replace(self._head, {name: value})
                else:
                    self._head[name] = value
        choices = dicts(event.get("choices"), "choices")
        # Moonshot's usage stands in the choice.
        reported = event.get("usage") or (choices[0].get("usage") if choices else None)
        self._usage = join_counts(self._usage, reported)
        return choices

    def _sample(self, index: int) -> _Sample:
        sample = self._samples.get(index)
        if sample is None:
            sample = self._samples[index] = _Sample(index)
            if index == 0:
                self._content = sample.content
        return sample

    def _show_late(self) -> Step:
        """All of the first sample, if it has another index than 0, so that none of it was shown."""
        if not self._samples or 0 in self._samples:
            return ""
        return self._samples[min(self._samples)].unshown()

    def _is_answered(self) -> bool:
        """Whether each sample has ended and is not empty."""
        samples = self._samples.values()
        return bool(samples) and all(sample.finish_reason and sample.is_full() for sample in samples)

    def is_complete(self) -> bool:
        """False: `[DONE]` ends the stream."""
        return False

    def is_whole(self) -> bool:
        """Whether each sample has ended and the usage has come: only `[DONE]` is missing."""
        return self._is_answered() and bool(self._usage) and not self._failed

    def reply(self) -> Any:
        if not self._samples:
            raise APIResponseValidationError("the stream was empty")
        choices = []
        for _, sample in sorted(self._samples.items()):
            if not (self._done or sample.finish_reason or sample.error):
                raise APIResponseValidationError("the stream ended before its finish reason: it was cut")
            choices.append(sample.choice())
        return {**self._head, "object": "chat.completion", "choices": choices, "usage": self._usage}


class _Sample:
    """One sample of a completion. Its pieces are joined at its end: one by one, that takes quadratic time."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.content: list[Any] = []
        """Pieces of text, and lists of parts."""
        self.finish_reason: Any = None
        self.error: Any = None
        self._native: JSONObject = {}
        self._texts: dict[str, list[str]] = {}
        self._calls: list[_Call] = []
        """The calls that have a name or arguments."""
        self._call_at: dict[tuple[str, str], _Call] = {}
        """The call that a server's index, alone or with an id, means now."""
        self._legacy_call: _Call | None = None
        self._audio: JSONObject = {}
        self._citations: list[Any] = []
        """Claude's citations, as litellm streams them."""
        self._extra: JSONObject = {}
        self._logprobs: Any = None
        self._token_ids: list[Any] | None = None
        self._late = False
        # What was shown as the text: whether a transcript of speech, and how many pieces of a refusal.
        self._spoke = False
        self._refusals_shown = 0

    def is_full(self) -> bool:
        return bool(self.content or self._texts or self._calls or self._legacy_call or self._audio)

    def add(self, piece: JSONObject) -> Step:
        """Take one choice of a chunk; returns what it adds."""
        self.finish_reason = piece.get("finish_reason") or self.finish_reason
        self.error = piece.get("error") or self.error
        self._native = {name: piece[name] for name in _NATIVE if piece.get(name)} or self._native
        # Some hosts send a sample that they did not stream as a whole message.
        delta = expect_dict(piece.get("delta") or piece.get("message") or piece.get("text") or {}, "delta")
        if piece.get("logprobs") is not None:
            self._logprobs = _with_logprobs(self._logprobs, piece["logprobs"], delta)
        if isinstance(piece.get("token_ids"), list):
            self._token_ids = [] if self._token_ids is None else self._token_ids
            self._token_ids += piece["token_ids"]
        text, reasoning = text_and_reasoning(content := content_of(delta))
        if text or reasoning:
            self.content.append(content)
        for name in REASONING_FIELDS:
            if thought := text_of(delta.get(name)):
                self._texts.setdefault(name, []).append(thought)
                # Some hosts send the same text in both fields.
                reasoning = reasoning or thought
        if refusal := text_of(delta.get("refusal")):
            self._texts.setdefault("refusal", []).append(refusal)
        spoken = self._add_audio(delta["audio"]) if isinstance(delta.get("audio"), dict) else ""
        if not self.content:
            self._spoke = self._spoke or bool(spoken)
            text = spoken or (self.show_refusal() if self.finish_reason else "")
        fragments = dicts(delta.get("tool_calls"), "tool_calls")
        calls = [*filter(None, map(self._add_call, fragments, range(len(fragments))))]
        if isinstance(delta.get("function_call"), dict):
            begun = self._legacy_call or _Call()
            call = begun.add({"function": delta["function_call"]}, 0)
            if call is not None:
                self._legacy_call = begun
                # llama-cpp-python writes each call in both forms.
                calls = calls or [call]
        own = delta.get("provider_specific_fields")
        if isinstance(own, dict) and own.get("citation"):
            self._citations.append(own["citation"])
        if not _KNOWN.issuperset(delta):
            self._add_unknown({name: value for name, value in delta.items() if name not in _KNOWN})
        text = text or ""
        return Delta(text=text, reasoning=reasoning, tool_calls=tuple(calls)) if reasoning or calls else text

    def show_refusal(self) -> str:
        """The refusal that was not shown. It is the text of an answer without another, as the end shows."""
        if self.content or self._spoke:
            return ""
        pieces = self._texts.get("refusal", ())
        before, self._refusals_shown = self._refusals_shown, len(pieces)
        return "".join(pieces[before:])

    def _add_unknown(self, fields: JSONObject) -> None:
        for name, value in list(fields.items()):
            present = self._extra.get(name)
            if isinstance(value, str) and isinstance(present, str):
                # A piece of a text, unless the host repeats a text that is whole.
                self._extra[name] = present if value == present else present + value
                del fields[name]
        _fold(self._extra, fields)

    def _add_audio(self, piece: JSONObject) -> str:
        for name, value in piece.items():
            if name in ("data", "transcript"):
                if isinstance(value, str):
                    self._audio.setdefault(name, []).append(value)
            elif value is not None:
                self._audio[name] = value
        return text_of(piece.get("transcript")) or ""

    def _add_call(self, fragment: JSONObject, position: int) -> ToolCallDelta | None:
        # Some hosts leave the index out, or give each call the index -1 or a text.
        given, identifier = fragment.get("index"), text_of(fragment.get("id")) or ""
        index, is_place = str(given or 0), type(given) is int and given >= 0
        call = self._call_at.get((index, identifier)) or self._call_at.get((index, ""))
        if call is None and self._calls and self._calls[-1].is_continued_by(fragment):
            # Some hosts count the index up with every fragment.
            call = self._calls[-1]
        if call is None or call.is_another(fragment, listed=position > 0 and not is_place):
            call = _Call()
        self._call_at[index, ""] = self._call_at[index, identifier] = call
        added = call.add(fragment, len(self._calls))
        if added is not None and added.index == len(self._calls):
            if added.index >= _MOST_ENTRIES:
                raise APIResponseValidationError("the stream has too many tool calls")
            self._calls.append(call)
        return added

    def unshown(self) -> Step:
        """All of the sample as one delta, once."""
        if self._late:
            return ""
        self._late = True
        message = self.choice()["message"]
        text, reasoning = text_and_reasoning(message.get("content"))
        for name in REASONING_FIELDS:
            reasoning = reasoning or message.get(name, "")
        calls = tuple(call.whole() for call in self._calls)
        text = text or message.get("refusal", "") or text_of(message.get("audio", {}).get("transcript")) or ""
        return Delta(text=text, reasoning=reasoning, tool_calls=calls)

    def choice(self) -> JSONObject:
        if self.content and (self._spoke or self._refusals_shown):
            raise APIResponseValidationError(
                "the stream has a text after a refusal or after speech", retryable=False
            )
        message: JSONObject = {"role": "assistant", "content": join_content(self.content)}
        for name, pieces in self._texts.items():
            message[name] = "".join(pieces)
        if self._calls:
            message["tool_calls"] = [call.entry() for call in self._calls]
        if self._legacy_call is not None:
            message["function_call"] = self._legacy_call.entry()["function"]
        if self._audio:
            message["audio"] = {
                name: "".join(value) if isinstance(value, list) else value
                for name, value in self._audio.items()
            }
        if self._citations:
            # The form that a whole answer has.
            message["provider_specific_fields"] = {"citations": [self._citations]}
        message |= {name: value for name, value in self._extra.items() if name not in message}
        choice = {"index": self.index, "message": message, **self._native}
        for name in ("finish_reason", "error"):
            if getattr(self, name):
                choice[name] = getattr(self, name)
        if self._logprobs is not None:
            choice["logprobs"] = self._logprobs
        if self._token_ids is not None:
            choice["token_ids"] = self._token_ids
        return choice


class _Call:
    """One tool call whose name and arguments come in pieces. Until it has either, it is no call."""

    __slots__ = ("_extra", "_id", "_inner", "_kind", "_name", "_pieces", "_position")

    def __init__(self) -> None:
        self._kind: str | None = None
        self._position: int | None = None
        self._id = self._name = ""
        self._pieces: list[str] = []
        self._inner: JSONObject = {}
        self._extra: JSONObject = {}

    def is_another(self, fragment: JSONObject, *, listed: bool) -> bool:
        """Whether a fragment begins another call: some hosts give all calls the same index, or none.

        `listed` says that it has no index and follows another one in the same list.
        """
        identifier, body = fragment.get("id"), fragment.get(self._kind or "")
        if not (self._name and isinstance(body, dict) and body.get("name")):
            return False
        if identifier and self._id:
            return bool(identifier != self._id)
        # Some hosts repeat the name in every fragment.
        begins = body["name"] != self._name or str(body.get("arguments", "")).lstrip().startswith("{")
        return listed or (begins and _is_object("".join(self._pieces)))

    def is_continued_by(self, fragment: JSONObject) -> bool:
        """Whether a fragment at an index of its own has arguments alone, which this call still lacks."""
        named = fragment.get("id") or any(part(fragment, kind).get("name") for kind in KINDS)
        return not named and not _is_object("".join(self._pieces))

    def add(self, fragment: JSONObject, position: int) -> ToolCallDelta | None:
        """What one entry of `tool_calls` adds; None before there is a call, which begins at `position`."""
        self._kind = self._kind or kind_of(fragment)
        kind = self._kind or "function"
        body = expect_dict(fragment.get(kind) or {}, f"tool call's {kind}")
        identifier, name = text_of(fragment.get("id")) or "", text_of(body.get("name")) or ""
        field = "input" if kind == "custom" else "arguments"
        arguments = arguments_of(body, field)
        self._id = identifier or self._id
        if name == self._name:
            # Some hosts repeat the name in every fragment.
            name = ""
        self._name += name
        self._pieces.append(arguments)
        for kept, source, known in (
            (self._inner, body, ("name", field)),
            (self._extra, fragment, ("id", "type", "index", *KINDS)),
        ):
            if len(source) > len(known) or not source.keys() <= set(known):
                _fold(kept, {name: value for name, value in source.items() if name not in known})
        if self._position is not None:
            return ToolCallDelta(index=self._position, id=identifier, name=name, arguments=arguments)
        if not (self._name or arguments):
            return None
        self._position = position
        return self.whole()

    def entry(self) -> JSONObject:
        field = "input" if self._kind == "custom" else "arguments"
        written = "".join(pieces := [*filter(None, self._pieces)])
        if len(pieces) > 1 and (written == pieces[-1] * 2 or all(map(pieces[-1].startswith, pieces))):
            # Some hosts send all of the arguments so far in every fragment, or once more at the end.
            written = pieces[-1] if _is_object(pieces[-1]) else written
        body = {**self._inner, "name": self._name, field: written}
        kind = self._kind or "function"
        return {**self._extra, "id": self._id, "type": kind, kind: body}

    def whole(self) -> ToolCallDelta:
        """The call as one delta."""
        arguments = "".join(self._pieces)
        return ToolCallDelta(index=self._position or 0, id=self._id, name=self._name, arguments=arguments)


def _is_object(text: str) -> bool:
    with contextlib.suppress(ValueError):
        return isinstance(orjson.loads(text), dict)
    return False


def _index(container: JSONMapping) -> int:
    """The index of an entry in a list that a stream fills. Its bound protects memory from a broken host."""
    index = container.get("index") or 0
    if not isinstance(index, int) or not 0 <= index < _MOST_ENTRIES:
        raise APIResponseValidationError(f"the stream has an entry at the impossible index {index!r:.40}")
    return index


def _replace(kept: JSONObject, added: JSONMapping) -> None:
    """Put fields in the place of those before, one by one in an object and in those within it."""
    for name, value in added.items():
        if isinstance(value, dict) and isinstance(kept.get(name), dict):
            _replace(kept[name], value)
        else:
            kept[name] = value


def _fold(kept: JSONObject, added: JSONMapping) -> None:
    """Add fields that this library does not know. Lists grow; the newest of any other value stays."""
    for name, value in added.items():
        present = kept.get(name)
        if value is None:
            continue
        if isinstance(value, list):
            entries = kept[name] = present if isinstance(present, list) else []
            add = _add_tool if name == "executed_tools" else _add_entry
            for entry in value:
                add(entries, entry)
        elif isinstance(value, dict):
            inner = kept[name] = present if isinstance(present, dict) else {}
            _fold(inner, value)
        else:
            kept[name] = value


def _add_entry(entries: list[Any], entry: Any) -> None:
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
    for name, value in entry.items():
        grows = name in _GROWING and isinstance(value, str) and isinstance(last.get(name), str)
        last[name] = last[name] + value if grows else value


def _add_tool(entries: list[Any], entry: Any) -> None:
    """Add a tool that Groq has run, or the output of one that was added when it began."""
    index = entry.get("index") if isinstance(entry, dict) else None
    begun = [
        tool
        for tool in entries
        if isinstance(tool, dict) and index is not None and tool.get("index") == index
    ]
    if begun:
        begun[0].update((name, value) for name, value in entry.items() if value is not None)
    else:
        entries.append(entry)


def _with_logprobs(kept: Any, piece: Any, delta: JSONMapping) -> JSONObject:
    if not isinstance(piece, dict):
        # Together streams the log probability of each token as a bare number.
        piece = {
            "tokens": [delta.get("content")],
            "token_logprobs": [piece],
            "token_ids": [delta.get("token_id")],
        }
    kept = {} if kept is None else kept
    for name, value in piece.items():
        present = kept.get(name)
        if isinstance(value, list):
            if isinstance(present, list):
                present += value
            else:
                kept[name] = list(value)
        else:
            kept.setdefault(name, value)
    return kept  # type: ignore[no-any-return]  # always a dict
