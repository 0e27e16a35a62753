"""Streams of the Chat Completions format → the completion that they add up to. Pure.

`quirks.any_server` has what servers other than OpenAI's do.
"""

from __future__ import annotations

from collections.abc import Callable, KeysView
from typing import Any, ClassVar, TypeAlias

from ...errors import APIResponseValidationError
from ...json_values import JSONMapping, JSONObject
from ...types.messages import Delta, Step, ToolCallDelta
from ..shared.replies import error_in, expect_dict, join_counts, join_steps, number_step, part, text_of
from ..transport.wire import END
from .decode import KINDS, REASONING_FIELDS, arguments_of, dicts, kind_of, raise_for_content

MOST_ENTRIES = 10_000

# Fields of a delta that have code of their own, and those that are the same in every answer.
_KNOWN = frozenset(
    {"role", "content", "refusal", "tool_calls", "function_call", "audio", "provider_specific_fields"}
    | set(REASONING_FIELDS)
)

AddEntry: TypeAlias = Callable[[str, list[Any], Any], None]
"""Adds an entry to the list of a field; its arguments are the field's name, the list and the entry."""


def append(name: str, entries: list[Any], entry: Any) -> None:
    entries.append(entry)


class TextChunks:
    """Recognises chunks that only add text to the first sample by comparing each with the one before it.

    Most of a stream is such chunks. The quick look takes 35 % off a stream of 100 chunks, SDK and transport
    included (bytecode instructions, Python 3.11, openai 2, `python -m benchmarks.hot_path`).
    """

    __slots__ = ("_fields", "_piece", "_read_in_full")

    def __init__(self, read_in_full: frozenset[str]) -> None:
        self._read_in_full = read_in_full
        """Fields of events that are read wherever they come."""
        self._fields: KeysView[str] = {}.keys()
        self._piece: JSONObject = {}
        """The choice of the last such chunk."""

    def read(self, event: Any) -> str | None:
        """The text of a chunk that only adds text to fields that were read in full before; else None."""
        try:
            (piece,) = event["choices"]
            delta = piece["delta"]
            (text,) = delta.values()
            last = self._piece
            last["delta"] = delta
            if type(text) is not str or "content" not in delta or event.get("usage"):
                return None
            if last == piece and event.keys() == self._fields:
                return text
            if not (
                piece.get("finish_reason")
                or piece.get("index")
                or piece.get("logprobs") is not None
                or "error" in piece
                or "token_ids" in piece
                or not self._read_in_full.isdisjoint(event)
            ):
                known, self._fields, self._piece = self._fields, event.keys(), dict(piece)
                # A field that comes for the first time may never be repeated.
                return text if self._fields <= known else None
        except (TypeError, KeyError, ValueError, AttributeError):
            pass
        return None


class Call:
    """One tool call whose name and arguments come in pieces. Until it has either, it is no call."""

    __slots__ = ("_inner", "_position", "extra", "id", "kind", "name", "pieces")
    kind_of = staticmethod(kind_of)
    arguments_of = staticmethod(arguments_of)
    add_entry = staticmethod(append)

    def __init__(self) -> None:
        self.kind: str | None = None
        self._position: int | None = None
        self.id = self.name = ""
        self.pieces: list[str] = []
        self._inner: JSONObject = {}
        self.extra: JSONObject = {}

    def add(self, fragment: JSONObject, position: int) -> ToolCallDelta | None:
        """What one entry of `tool_calls` adds; None before there is a call, which begins at `position`."""
        self.kind = self.kind or self.kind_of(fragment)
        kind = self.kind or "function"
        body = expect_dict(fragment.get(kind) or {}, f"tool call's {kind}")
        identifier, name = text_of(fragment.get("id")) or "", text_of(body.get("name")) or ""
        field = "input" if kind == "custom" else "arguments"
        arguments = self.arguments_of(body, field)
        self.id = identifier or self.id
        if name == self.name:
            # It may come again in every fragment.
            name = ""
        self.name += name
        self.pieces.append(arguments)
        for kept, source, known in (
            (self._inner, body, ("name", field)),
            (self.extra, fragment, ("id", "type", "index", *KINDS)),
        ):
            if len(source) > len(known) or not source.keys() <= set(known):
                fold(
                    kept, {name: value for name, value in source.items() if name not in known}, self.add_entry
                )
        if self._position is not None:
            return ToolCallDelta(index=self._position, id=identifier, name=name, arguments=arguments)
        if not (self.name or arguments):
            return None
        self._position = position
        return self.whole()

    def entry(self) -> JSONObject:
        kind = self.kind or "function"
        body = {
            **self._inner,
            "name": self.name,
            "input" if kind == "custom" else "arguments": self._whole_arguments(),
        }
        return {**self.extra, "id": self.id, "type": kind, kind: body}

    def whole(self) -> ToolCallDelta:
        """The call as one delta."""
        arguments = "".join(self.pieces)
        return ToolCallDelta(index=self._position or 0, id=self.id, name=self.name, arguments=arguments)

    def _whole_arguments(self) -> str:
        """The arguments of the whole call."""
        return "".join(self.pieces)


class Sample:
    """One sample of a completion. Its pieces are joined at its end: one by one, that takes quadratic time."""

    make_call: ClassVar[type[Call]] = Call
    add_entry = staticmethod(append)

    def __init__(self, index: int) -> None:
        self.index = index
        self.content: list[Any] = []
        """Pieces of text. Other servers than OpenAI's have lists of parts too."""
        self.finish_reason: Any = None
        self.fields: JSONObject = {}
        """What the choice has beside its message."""
        self.calls: list[Call] = []
        """The calls that have a name or arguments."""
        self.call_at: dict[Any, Call] = {}
        self._legacy_call: Call | None = None
        self._texts: dict[str, list[str]] = {}
        self._audio: JSONObject = {}
        self.extra: JSONObject = {}
        self._logprobs: JSONObject | None = None
        # What was shown as the text: whether a transcript of speech, and how many pieces of a refusal.
        self._spoke = False
        self._refusals_shown = 0

    def is_full(self) -> bool:
        return bool(self.content or self._texts or self.calls or self._legacy_call or self._audio)

    def add(self, piece: JSONObject) -> Step:
        """Take one choice of a chunk; returns what it adds."""
        self.finish_reason = piece.get("finish_reason") or self.finish_reason
        delta = expect_dict(piece.get("delta") or {}, "delta")
        if piece.get("logprobs") is not None:
            kept = self._logprobs = {} if self._logprobs is None else self._logprobs
            for name, value in expect_dict(piece["logprobs"], "logprobs").items():
                if not isinstance(value, list):
                    kept.setdefault(name, value)
                elif isinstance(kept.get(name), list):
                    kept[name] += value
                else:
                    kept[name] = list(value)
        text, reasoning = self._add_content(delta.get("content"))
        for name in REASONING_FIELDS:
            if thought := text_of(delta.get(name)):
                self._texts.setdefault(name, []).append(thought)
                # The same text may stand in both fields.
                reasoning = reasoning or thought
        if refusal := text_of(delta.get("refusal")):
            self._texts.setdefault("refusal", []).append(refusal)
        audio = part(delta, "audio")
        for name, value in audio.items():
            if name in ("data", "transcript"):
                if isinstance(value, str):
                    self._audio.setdefault(name, []).append(value)
            elif value is not None:
                self._audio[name] = value
        spoken = text_of(audio.get("transcript")) or ""
        if not self.content:
            self._spoke = self._spoke or bool(spoken)
            text = spoken or (self.show_refusal() if self.finish_reason else "")
        calls = []
        for position, fragment in enumerate(dicts(delta.get("tool_calls"), "tool_calls")):
            call = self._find_call(fragment, position)
            added = call.add(fragment, len(self.calls))
            if added is not None and added.index == len(self.calls):
                if added.index >= MOST_ENTRIES:
                    raise APIResponseValidationError("the stream has too many tool calls")
                self.calls.append(call)
            calls += [added] if added is not None else []
        if isinstance(delta.get("function_call"), dict):
            begun = self._legacy_call or self.make_call()
            added = begun.add({"function": delta["function_call"]}, 0)
            if added is not None:
                self._legacy_call = begun
                # Each call may come in both forms.
                calls = calls or [added]
        if not _KNOWN.issuperset(delta):
            unknown = {name: value for name, value in delta.items() if name not in _KNOWN}
            for name, value in list(unknown.items()):
                present = self.extra.get(name)
                if isinstance(value, str) and isinstance(present, str):
                    # A piece of a text, unless the host repeats a text that is whole.
                    self.extra[name] = present if value == present else present + value
                    del unknown[name]
            fold(self.extra, unknown, self.add_entry)
        text = text or ""
        return Delta(text=text, reasoning=reasoning, tool_calls=tuple(calls)) if reasoning or calls else text

    def _add_content(self, content: Any) -> tuple[str | None, str]:
        """Take the content of a delta; returns the text and the reasoning in it."""
        if content is not None and type(content) is not str:
            raise_for_content(content)
        if content:
            self.content.append(content)
        return content, ""

    def show_refusal(self) -> str:
        """The refusal that was not shown. It is the text of an answer without another, as the end shows."""
        if self.content or self._spoke:
            return ""
        pieces = self._texts.get("refusal", ())
        before, self._refusals_shown = self._refusals_shown, len(pieces)
        return "".join(pieces[before:])

    def _find_call(self, fragment: JSONObject, position: int) -> Call:
        """The call that an entry of `tool_calls` belongs to. It may be a new one."""
        index = _index(fragment)
        call = self.call_at.get(index)
        if call is None:
            call = self.call_at[index] = self.make_call()
        return call

    def _join_content(self) -> Any:
        return "".join(self.content) or None

    def choice(self) -> JSONObject:
        if self.content and (self._spoke or self._refusals_shown):
            raise APIResponseValidationError(
                "the stream has a text after a refusal or after speech", retryable=False
            )
        message: JSONObject = {"role": "assistant", "content": self._join_content()}
        for name, pieces in self._texts.items():
            message[name] = "".join(pieces)
        if self.calls:
            message["tool_calls"] = [call.entry() for call in self.calls]
        if self._legacy_call is not None:
            message["function_call"] = self._legacy_call.entry()["function"]
        if self._audio:
            message["audio"] = {
                name: "".join(value) if isinstance(value, list) else value
                for name, value in self._audio.items()
            }
        message |= {name: value for name, value in self.extra.items() if name not in message}
        choice = {"index": self.index, "message": message, **self.fields}
        if self.finish_reason:
            choice["finish_reason"] = self.finish_reason
        if self._logprobs is not None:
            choice["logprobs"] = self._logprobs
        return choice


class Assembler:
    """Folds chat completion chunks into the completion that they add up to."""

    make_sample: ClassVar[type[Sample]] = Sample
    HEAD: ClassVar[tuple[str, ...]] = ("id", "model", "created", "service_tier", "system_fingerprint")
    """The fields of chunks that the completion has too."""
    READ_IN_FULL: ClassVar[frozenset[str]] = frozenset({"error", "type"})

    def __init__(self) -> None:
        self.head: JSONObject = {}
        self.usage: Any = None
        self.samples: dict[int, Sample] = {}
        self._content: list[Any] | None = None
        """The content of the first sample."""
        self._read_text = TextChunks(self.READ_IN_FULL).read
        self._done = self._failed = False

    def feed(self, event: Any) -> Step:
        content = self._content
        if content is not None and (text := self._read_text(event)) is not None:
            content.append(text)
            return text
        if event is END:
            self._done = True
            return self.samples[0].show_refusal() if 0 in self.samples else self._show_late()
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
            return [number_step(sample.show_refusal(), index) for index, sample in self.samples.items()]
        pieces = [(_index(piece), piece) for piece in self._choices_of(event)]
        return [number_step(self._sample(index).add(piece), index) for index, piece in pieces]

    def _choices_of(self, event: Any) -> list[JSONObject]:
        """The choices of a chunk, whose other fields are kept."""
        event = expect_dict(event, "stream event")
        failure = error_in(event, "choices")
        if failure is not None:
            # Finish words before it belong to a part: a whole body with a failure is no answer either.
            self._failed = True
            raise failure
        for name in self.HEAD:
            value = event.get(name)
            # Chunks without a choice may have empty texts in all of them.
            if value or (value is not None and name not in self.head):
                self.head[name] = value
        self.usage = join_counts(self.usage, event.get("usage") or None)
        return dicts(event.get("choices"), "choices")

    def _sample(self, index: int) -> Sample:
        sample = self.samples.get(index)
        if sample is None:
            sample = self.samples[index] = self.make_sample(index)
            if index == 0:
                self._content = sample.content
        return sample

    def _show_late(self) -> Step:
        """What the first sample adds if it has another index than 0, so that none of it was shown."""
        return ""

    def is_complete(self) -> bool:
        """False: `[DONE]` ends the stream."""
        return False

    def is_whole(self) -> bool:
        """Whether each sample is full and has ended, and the usage has come: only `[DONE]` is missing."""
        samples = self.samples.values()
        ended = bool(samples) and all(sample.finish_reason and sample.is_full() for sample in samples)
        return ended and bool(self.usage) and not self._failed

    def reply(self) -> Any:
        if not self.samples:
            raise APIResponseValidationError("the stream was empty")
        choices = []
        for _, sample in sorted(self.samples.items()):
            if not (self._done or sample.finish_reason or "error" in sample.fields):
                raise APIResponseValidationError("the stream ended before its finish reason: it was cut")
            choices.append(sample.choice())
        return {**self.head, "object": "chat.completion", "choices": choices, "usage": self.usage}


def _index(container: JSONMapping) -> int:
    """The index of an entry in a list that a stream fills. Its bound protects memory from a broken host."""
    index = container.get("index") or 0
    if not isinstance(index, int) or not 0 <= index < MOST_ENTRIES:
        raise APIResponseValidationError(f"the stream has an entry at the impossible index {index!r:.40}")
    return index


def fold(kept: JSONObject, added: JSONMapping, add_entry: AddEntry) -> None:
    """Add fields that this library does not know. Lists grow; the newest of any other value stays."""
    for name, value in added.items():
        present = kept.get(name)
        if value is None:
            continue
        if isinstance(value, list):
            entries = kept[name] = present if isinstance(present, list) else []
            for entry in value:
                add_entry(name, entries, entry)
        elif isinstance(value, dict):
            inner = kept[name] = present if isinstance(present, dict) else {}
            fold(inner, value, add_entry)
        else:
            kept[name] = value
