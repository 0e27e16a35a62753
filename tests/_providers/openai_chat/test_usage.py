"""The counts of tokens of OpenAI's formats, and of hosts that leave some of them out."""

from __future__ import annotations

import dataclasses
from decimal import Decimal
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_provider import Client, Usage
from llm_provider._providers.openai_chat.usage import read_usage
from openai_support import JSON_VALUES, completion
from raw_server import RawServer, answering, streaming

NAMES = {"chat": ("prompt", "completion"), "responses": ("input", "output")}


class TestUsage:
    @given(
        st.dictionaries(
            st.sampled_from(
                [
                    "prompt_tokens",
                    "completion_tokens",
                    "total_tokens",
                    "prompt_tokens_details",
                    "completion_tokens_details",
                ]
            ),
            JSON_VALUES,
        )
    )
    def test_nonsense_counts_as_nothing(self, encoded: dict[str, Any]) -> None:
        for tokens in dataclasses.asdict(read_usage(encoded)).values():
            assert type(tokens) is int
            assert tokens >= 0


def usage_of(form: str, read: Any, written: Any, total: Any, parts: Any = None, reasoning: Any = None) -> Any:
    """A usage object of a format, without the counts that are `...`."""
    prompt, answer = NAMES[form]
    counts = {
        f"{prompt}_tokens": read,
        f"{answer}_tokens": written,
        "total_tokens": total,
        f"{prompt}_tokens_details": parts,
        f"{answer}_tokens_details": {"reasoning_tokens": reasoning} if reasoning else None,
    }
    return {name: value for name, value in counts.items() if value is not ...}


def read_as(form: str, counts: Any) -> Usage:
    return read_usage(counts, *NAMES[form])


amounts = st.integers(1, 10_000)
forms = st.sampled_from(list(NAMES))
without_meaning = st.sampled_from([0, None, ..., 1, "401", -5])


class TestTokensThatOnlyTheTotalHas:
    @given(forms, amounts, amounts, amounts)
    def test_they_are_thinking(self, form: str, read: int, written: int, thought: int) -> None:
        usage = read_as(form, usage_of(form, read, written, read + written + thought))
        assert usage == Usage(
            input_tokens=read, output_tokens=written + thought, reasoning_output_tokens=thought
        )

    @given(forms, amounts, amounts, amounts)
    def test_thinking_may_be_named_and_left_out(
        self, form: str, read: int, written: int, thought: int
    ) -> None:
        usage = read_as(form, usage_of(form, read, written, read + written + thought, reasoning=thought))
        assert (usage.output_tokens, usage.reasoning_output_tokens) == (written + thought, thought)

    @given(
        forms, amounts, amounts, amounts, st.sampled_from(["audio_tokens", "cached_tokens", "image_tokens"])
    )
    def test_as_many_as_a_part_of_the_prompt_are_that_part(
        self, form: str, read: int, written: int, part: int, name: str
    ) -> None:
        usage = read_as(form, usage_of(form, read, written, read + written + part, {name: part}))
        assert (usage.input_tokens, usage.output_tokens) == (read + part, written)

    @given(forms, amounts, amounts)
    def test_without_a_count_of_the_prompt_they_are_the_prompt(
        self, form: str, read: int, written: int
    ) -> None:
        for nothing in (..., None, 0):
            usage = read_as(form, usage_of(form, nothing, written, read + written))
            assert (usage.input_tokens, usage.output_tokens) == (read, written)

    @given(forms, amounts, amounts, without_meaning)
    def test_a_total_that_is_no_sum_says_nothing(
        self, form: str, read: int, written: int, total: Any
    ) -> None:
        usage = read_as(form, usage_of(form, read + 1, written, total))
        assert usage == Usage(input_tokens=read + 1, output_tokens=written)

    @given(forms, amounts, amounts, amounts, st.booleans())
    def test_counts_that_add_up_stay(
        self, form: str, read: int, written: int, part: int, audio: bool
    ) -> None:
        name = "audio_tokens" if audio else "cached_tokens"
        usage = read_as(
            form, usage_of(form, read + part, written + part, read + written + 2 * part, {name: part}, part)
        )
        assert (usage.input_tokens, usage.output_tokens) == (read + part, written + part)


class TestPartsBesideThePrompt:
    @given(forms, amounts, amounts, amounts, without_meaning | st.just("sum"))
    def test_a_part_that_is_larger_than_the_prompt_is_beside_it(
        self, form: str, read: int, more: int, written: int, total: Any
    ) -> None:
        audio = read + more
        total = read + audio + written if total == "sum" else total
        usage = read_as(form, usage_of(form, read, written, total, {"audio_tokens": audio}))
        assert usage == Usage(input_tokens=read + audio, output_tokens=written, audio_input_tokens=audio)

    @given(forms, amounts, amounts, amounts)
    def test_thinking_beside_audio(self, form: str, read: int, more: int, thought: int) -> None:
        audio = read + more
        usage = read_as(form, usage_of(form, read, 5, read + audio + 5 + thought, {"audio_tokens": audio}))
        assert (usage.input_tokens, usage.output_tokens) == (read + audio, 5 + thought)


PRICES = """provider,model,input,output
mistral,voxtral-small-latest,2,5
local,m,2,5
openrouter,m,2,5
openai,m,2,5
"""

VOXTRAL = {
    "prompt_audio_seconds": 30,
    "prompt_tokens": 11,
    "prompt_tokens_details": {"audio_tokens": 375},
    "completion_tokens": 15,
    "total_tokens": 401,
}
THINKING = {"prompt_tokens": 35, "completion_tokens": 12, "total_tokens": 109}


@pytest.mark.filterwarnings("ignore:Accessing the 'model_(computed_)?fields'")  # litellm reads it
@pytest.mark.parametrize(
    "model", ["mistral/voxtral-small-latest", "local/m", "openrouter/m", "litellm/openai/m"]
)
@pytest.mark.parametrize(
    ("counts", "expected"), [(VOXTRAL, (386, 15, 0)), (THINKING, (35, 74, 62))], ids=["audio", "thinking"]
)
@pytest.mark.sampled(3)
def test_calls_and_streams_and_the_ledger_count_alike(
    model: str, counts: Any, expected: tuple[int, int, int], tmp_path: Path
) -> None:
    file, prices = tmp_path / "calls.jsonl", tmp_path / "prices.csv"
    prices.write_text(PRICES)
    reply = {**completion(), "usage": counts}
    head = {name: value for name, value in reply.items() if name not in ("choices", "usage")}
    piece = {"index": 0, "delta": {"role": "assistant", "content": "Hello"}, "finish_reason": None}
    end = {"index": 0, "delta": {}, "finish_reason": "stop"}
    events = [
        {**head, "choices": [piece]},
        {**head, "choices": [end]},
        {**head, "choices": [], "usage": counts},
    ]
    # litellm replaces the total of a stream by the sum.
    lost = "litellm" in model and counts is THINKING
    for streamed in (False,) if lost else (False, True):
        behaviour = streaming(events) if streamed else answering(orjson.dumps(reply))
        with RawServer(behaviour) as server, Client(cache=False, ledger=file, prices=prices) as client:
            where = {"base_url": f"{server.root}/v1", "api_key": "k"}
            if streamed:
                stream = client.stream(model, "Hi", **where)
                list(stream)
                response = stream.response
            else:
                response = client.call(model, "Hi", **where)
            usage = response.usage
            assert (usage.input_tokens, usage.output_tokens, usage.reasoning_output_tokens) == expected
            cost = Decimal(2 * expected[0] + 5 * expected[1]).scaleb(-6)
            assert client.usage.spent == cost
            assert response.cost == float(cost)
            (row,) = client.usage.rows()
            assert row.usage == usage
        line = orjson.loads(file.read_text().splitlines()[-1])
        assert (Decimal(line["usd"]), Usage(**line["usage"])) == (cost, usage)
