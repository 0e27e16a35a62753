"""Chunks of Chat Completions as servers other than OpenAI's write them. Pure."""

import contextlib
from typing import Any

import orjson

from ..._core.formats.openai_chat import stream as standard
from ..._core.formats.openai_chat.decode import KINDS, REASONING_FIELDS
from ..._core.formats.shared.payload import merge
from ..._core.formats.shared.replies import join_counts, part, text_of
from ..._core.json_values import JSONObject
from ..._core.types.messages import Delta, Step
from . import gateways, groq, mistral
from .decode import arguments_of, kind_of, read_content


class Call(standard.Call):
    """A call whose fragments a server may number in any way, and repeat."""

    __slots__ = ()
    kind_of = staticmethod(kind_of)
    arguments_of = staticmethod(arguments_of)

    @staticmethod
    def add_entry(name: str, entries: list[Any], entry: Any) -> None:
        add = groq.add_tool if name == "executed_tools" else gateways.add_entry
        add(entries, entry)

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


_PLAIN = frozenset({"index", "delta", "finish_reason"})


class Sample(standard.Sample):
    make_call = Call
    add_entry = staticmethod(Call.add_entry)

    def add(self, piece: JSONObject) -> Step:
        delta = piece.get("delta")
        if not (_PLAIN.issuperset(piece) and delta is not None and gateways.OWN_FIELDS not in delta):
            piece = self._in_standard_form(piece)
        return super().add(piece)

    def _in_standard_form(self, piece: JSONObject) -> JSONObject:
        for name in ("error", *gateways.NATIVE_WORDS):
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
            gateways.collect_citation(self.extra, delta)
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
        return mistral.join_content(self.content)


class Assembler(standard.Assembler):
    make_sample = Sample
    HEAD = (
        *standard.Assembler.HEAD, "provider", "citations", "search_results", "metadata",
        "openrouter_metadata", "perf_metrics", "prompt_token_ids",
    )  # fmt: skip
    """The fields of OpenRouter, Perplexity, xAI, SGLang, Fireworks and vLLM too. Groq's own is folded."""
    READ_IN_FULL = standard.Assembler.READ_IN_FULL | {
        "metadata", "openrouter_metadata", "perf_metrics", "prompt_token_ids", groq.FIELD
    }  # fmt: skip

    def __init__(self) -> None:
        super().__init__()
        self._shown_late = False

    def _choices_of(self, event: Any) -> list[JSONObject]:
        if event is None:
            # Some upstreams write a null between their chunks.
            return []
        choices = super()._choices_of(event)
        if event.get(groq.FIELD) is not None:
            self.head = merge(self.head, {groq.FIELD: event[groq.FIELD]})
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
