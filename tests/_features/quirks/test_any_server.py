"""What stands in the place of a format's functions at servers other than its maker's."""

import itertools
import json
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_provider._core.formats import registry
from llm_provider._core.formats.openai import encode as adapter
from llm_provider._core.formats.shared.conversations import tell_apart
from llm_provider._core.formats.transport.wire import END
from llm_provider._core.requests.routing import resolve
from llm_provider._core.types.messages import ToolCall, delta_of
from llm_provider._features.quirks import any_server as chat_stream
from llm_provider._features.quirks.any_server import Assembler, decode
from openai_support import completion


@pytest.mark.parametrize(
    ("model", "base_url", "module"),
    [
        ("gpt-6.1-sol", None, ""),
        ("gpt-6.1-sol", "http://127.0.0.1:1/v1", None),
        ("groq/openai/gpt-oss-120b", None, "groq"),
        ("groq/openai/gpt-oss-120b", "http://127.0.0.1:1/v1", "groq"),
        ("mistral/mistral-large-latest", None, None),
        ("openrouter/openai/gpt-oss-120b", None, "routers"),
        ("openrouter/openai/gpt-oss-120b", "http://127.0.0.1:1/v1", "routers"),
        ("local/m", None, None),
        ("local/openrouter/openai/gpt-oss-120b", None, "routers"),
    ],
)
def test_the_row_names_the_module(model: str, base_url: str | None, module: str | None) -> None:
    target = resolve(model, base_url)
    assert target.quirks == module
    found = registry.load("openai", target.quirks)
    standard = [name for name in adapter.__all__ if getattr(found, name) is getattr(adapter, name)]
    others = {"decode", "assembler"}
    changed = {"": set(), None: others, "groq": others, "routers": {"encode", *others}}
    assert set(adapter.__all__) - set(standard) == changed[module]


JSON = dict[str, Any]
CITY = '{"city": "Bern"}'
OBJECT = {"city": "Bern"}
EMPTY: tuple[Any, ...] = ("", None, ...)


def without(fields: JSON) -> JSON:
    return {name: value for name, value in fields.items() if value is not ...}


def bodies(kind: str, name: Any, arguments: Any) -> JSON:
    return without({"name": name, "input" if kind == "custom" else "arguments": arguments})


def shuffled(fields: JSON, order: Sequence[int]) -> JSON:
    names = sorted(fields, key=lambda name: order[len(name) % len(order)])
    return {name: fields[name] for name in names}


def as_text(arguments: Any) -> str:
    """Arguments as text; some hosts send the object itself."""
    return arguments if isinstance(arguments, str) else json.dumps(arguments, separators=(",", ":"))


blanks = st.sampled_from([pair for pair in itertools.product(EMPTY, EMPTY) if pair != (..., ...)])
orders = st.permutations(range(5))


@st.composite
def entries(draw: st.DrawFn) -> tuple[JSON, ToolCall | None]:
    """An entry of `tool_calls` and the call in it, None if it holds none."""
    kind = draw(st.sampled_from(["function", "custom"]))
    other = "custom" if kind == "function" else "function"
    typed = draw(st.booleans())
    real = draw(st.booleans())
    entry: JSON = {"id": draw(st.sampled_from(["c1", "c2"]))}
    if typed:
        entry["type"] = kind
    arguments: Any = draw(st.sampled_from([CITY, "text"] if kind == "custom" else [CITY, OBJECT]))
    entry[kind] = bodies(kind, "weather", arguments) if real else bodies(kind, *draw(blanks))
    if draw(st.booleans()):
        # Without a type, the other member must be empty, so that it is known which one counts.
        full = typed and draw(st.booleans())
        entry[other] = bodies(other, "other", "{}") if full else bodies(other, *draw(blanks))
    call = ToolCall(id=entry["id"], name="weather", arguments=as_text(arguments), type=kind)
    return shuffled(entry, draw(orders)), call if real else None


def read(message: JSON) -> Any:
    return decode(completion({"content": None, **message})).choices[0]


def fragments(entry: JSON, index: int, cuts: int) -> Iterator[JSON]:
    """An entry in pieces: first its id, its type and nothing else, then each text cut in two."""
    begun = {"index": index, **entry}
    kinds = [kind for kind in ("function", "custom") if kind in entry]
    yield {**begun, **{kind: dict.fromkeys(entry[kind], "") for kind in kinds}}
    for half in (0, 1):
        pieces = {}
        for kind in kinds:
            pieces[kind] = {
                name: text and (text[:cuts] if half == 0 else text[cuts:])
                if name != "name" and not isinstance(text, dict) else
                (text if half == 0 else "")
                for name, text in entry[kind].items()
            }  # fmt: skip
        yield {"index": index, **pieces}


def folded(deltas: Sequence[JSON]) -> tuple[Any, list[tuple[str, str, str]]]:
    """The answer to a stream, and the calls that its deltas have shown."""
    assembler, calls = Assembler(), {}
    events: list[Any] = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    for event in [*events, {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}, END]:
        for call in delta_of(assembler.feed(event)).tool_calls:
            before = calls.get(call.index, ("", "", ""))
            calls[call.index] = tuple(
                map("".join, zip(before, (call.id, call.name, call.arguments), strict=True))
            )
    assert list(calls) == list(range(len(calls)))
    return decode(assembler.reply()).choices[0], list(calls.values())  # type: ignore[arg-type]  # three each


@given(st.lists(entries(), min_size=1, max_size=4), blanks, st.booleans())
def test_only_calls_are_calls(drawn: list[tuple[JSON, ToolCall | None]], legacy: Any, beside: bool) -> None:
    message: JSON = {"tool_calls": [entry for entry, _ in drawn], "content": "Hello"}
    if beside:
        message["function_call"] = bodies("function", *legacy)
    choice = read(message)
    expected = tell_apart([call for _, call in drawn if call is not None])
    assert choice.tool_calls == expected
    assert choice.finish_reason == ("tool_calls" if expected else "stop")
    assert "function_call" not in choice.message
    assert [set(call) & {"function", "custom"} for call in choice.message.get("tool_calls", ())] == [
        {call.type} for call in expected
    ]
    assert read(choice.message).tool_calls == expected


@given(st.lists(entries(), min_size=1, max_size=4), st.integers(0, 20), blanks)
def test_streamed_calls_are_those_of_the_whole(
    drawn: list[tuple[JSON, ToolCall | None]], cuts: int, legacy: Any
) -> None:
    nothing = {"function_call": bodies("function", *legacy), "tool_calls": None}
    deltas: list[JSON] = [{"content": "Hello", **nothing}]
    for index, (entry, _) in enumerate(drawn):
        deltas += [{"tool_calls": [piece]} for piece in fragments(entry, index, cuts)]
    choice, calls = folded(deltas)
    expected = tuple(call for _, call in drawn if call is not None)
    assert choice.tool_calls == tell_apart(expected)
    assert calls == [(call.id, call.name, call.arguments) for call in expected]
    assert choice.text == "Hello"


@given(blanks)
def test_a_legacy_call_without_name_and_arguments_is_none(legacy: Any) -> None:
    body = bodies("function", *legacy)
    choice = read({"content": "4", "function_call": body, "tool_calls": None})
    assert (choice.tool_calls, choice.finish_reason) == ((), "stop")
    assert choice.message == {"role": "assistant", "content": "4"}
    assert folded([{"content": "4", "function_call": body}])[0] == choice


calls_alone = st.tuples(st.sampled_from("fg"), st.sampled_from([CITY, OBJECT, "{}"]))


@given(st.lists(calls_alone, min_size=1, max_size=4), st.booleans(), st.booleans())
def test_streamed_calls_need_no_id_or_index(drawn: list[tuple[str, Any]], apart: bool, indexed: bool) -> None:
    """In one chunk or in a chunk each, then also with the same index."""
    entries: list[JSON] = [{"function": bodies("function", *call)} for call in drawn]
    choice = read({"tool_calls": entries})
    index = {"index": 0} if apart and indexed else {}
    groups = [[{**entry, **index}] for entry in entries] if apart else [entries]
    streamed, shown = folded([{"tool_calls": group} for group in groups])
    assert streamed.tool_calls == choice.tool_calls
    assert shown == [("", name, as_text(arguments)) for name, arguments in drawn]


thoughts = st.lists(st.text(min_size=1, max_size=5), min_size=1, max_size=5)


@given(st.lists(st.tuples(thoughts, thoughts, st.booleans()), min_size=1, max_size=3))
def test_a_thought_in_pieces_is_one_part(turns: list[tuple[list[str], list[str], bool]]) -> None:
    """Mistral sends a part with each piece of a thought, and its text as text or in parts."""
    deltas: list[Any] = []
    parts: list[Any] = []
    for thought, words, plain in turns:
        deltas += [[{"type": "thinking", "thinking": [{"type": "text", "text": piece}]}] for piece in thought]
        deltas.append([{"type": "text", "text": ""}])
        deltas += [word if plain else [{"type": "text", "text": word}] for word in words]
        parts.append({"type": "thinking", "thinking": [{"type": "text", "text": "".join(thought)}]})
        parts.append({"type": "text", "text": "".join(words)})
    events = [{"choices": [{"index": 0, "delta": {"content": content}}]} for content in deltas]
    assembler = chat_stream.Assembler()
    for event in [*events, {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}, END]:
        assembler.feed(event)
    reply = assembler.reply()
    assert reply["choices"][0]["message"]["content"] == parts
    whole = completion({"content": parts})["choices"][0]["message"]
    assert decode(reply).choices[0].message == whole


def test_a_field_that_only_one_text_chunk_has_is_kept() -> None:
    chunks: list[Any] = [
        {"choices": [{"index": 0, "delta": {"content": str(number)}, "finish_reason": None}]}
        for number in range(5)
    ]
    chunks[3]["citations"] = ["http://x"]
    assembler = chat_stream.Assembler()
    for chunk in [*chunks, {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}, END]:
        assembler.feed(chunk)
    reply = assembler.reply()
    assert (reply["citations"], decode(reply).choices[0].text) == (["http://x"], "01234")
