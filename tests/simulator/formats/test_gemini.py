"""``generateContent`` through the google-genai SDK."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from google import genai
from google.genai import errors, types

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from llm_provider.simulator import Simulator

    from ..conftest import Post

# The SDK derives its own class from aiohttp's session, which aiohttp discourages.
pytestmark = pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession:DeprecationWarning")

MODEL = "gemini-3.8-flash"
WEATHER = types.Tool(
    function_declarations=[
        types.FunctionDeclaration(
            name="weather",
            parameters_json_schema={"type": "object", "properties": {"city": {"type": "string"}}},
        )
    ]
)
MANUAL = types.AutomaticFunctionCallingConfig(disable=True)


def run(simulator: Simulator, work: Callable[[Any], Awaitable[Any]]) -> Any:
    async def main() -> Any:
        options = types.HttpOptions(base_url=simulator.url("gemini"))
        client = genai.Client(api_key="test-key", http_options=options)
        try:
            return await work(client.aio.models)
        finally:
            await client.aio.aclose()
            client.close()

    return asyncio.run(main())


def ask(simulator: Simulator, text: str = "hello there friend", **config: Any) -> Any:
    wanted = types.GenerateContentConfig(**config)
    return run(simulator, lambda models: models.generate_content(model=MODEL, contents=text, config=wanted))


def stream(simulator: Simulator, text: str = "hello there friend", **config: Any) -> list[Any]:
    wanted = types.GenerateContentConfig(**config)

    async def collect(models: Any) -> list[Any]:
        chunks = await models.generate_content_stream(model=MODEL, contents=text, config=wanted)
        return [chunk async for chunk in chunks]

    return run(simulator, collect)  # type: ignore[no-any-return]  # the SDK's


def test_answers_a_sum(simulator: Simulator) -> None:
    answer = ask(simulator, "What is 12 + 30?")
    assert answer.text == "42"
    assert answer.candidates[0].finish_reason == "STOP"
    usage = answer.usage_metadata
    assert (usage.prompt_token_count, usage.candidates_token_count, usage.total_token_count) == (4, 1, 5)
    assert answer.sdk_http_response.headers


def test_stream_says_the_same_as_the_whole_answer(simulator: Simulator) -> None:
    whole, chunks = ask(simulator), stream(simulator)
    assert "".join(chunk.text for chunk in chunks) == whole.text == "echo: hello there friend"
    assert len(chunks) == 4
    assert chunks[-1].usage_metadata == whole.usage_metadata
    assert [chunk.candidates[0].finish_reason for chunk in chunks] == [None, None, None, "STOP"]
    totals = [chunk.usage_metadata.total_token_count for chunk in chunks]
    assert totals == sorted(totals)


@pytest.mark.parametrize("streamed", [False, True])
def test_thoughts(simulator: Simulator, *, streamed: bool) -> None:
    thinking = types.ThinkingConfig(thinking_level=types.ThinkingLevel.LOW, include_thoughts=True)
    answers = (
        stream(simulator, thinking_config=thinking)
        if streamed
        else [ask(simulator, thinking_config=thinking)]
    )
    parts = [part for answer in answers for part in answer.candidates[0].content.parts]
    assert parts[0].thought
    assert not any(part.thought for part in parts[1:])
    assert any(part.thought_signature for part in parts[1:])
    usage = answers[-1].usage_metadata
    assert usage.thoughts_token_count > 0
    assert usage.total_token_count == sum(
        (usage.prompt_token_count, usage.candidates_token_count, usage.thoughts_token_count)
    )
    hidden = ask(simulator, thinking_config=types.ThinkingConfig(thinking_budget=1024))
    assert [part.thought for part in hidden.candidates[0].content.parts] == [None]
    assert hidden.usage_metadata.thoughts_token_count > 0


def test_budget_and_level_together_are_refused(simulator: Simulator) -> None:
    both = types.ThinkingConfig(thinking_level=types.ThinkingLevel.LOW, thinking_budget=5)
    with pytest.raises(errors.ClientError) as caught:
        ask(simulator, thinking_config=both)
    assert (caught.value.code, caught.value.status) == (400, "INVALID_ARGUMENT")


def test_cached_tokens_are_in_the_prompt_count(simulator: Simulator) -> None:
    simulator.configure(cached_tokens=5, cache_write_tokens=5)
    usage = ask(simulator, "x" * 40).usage_metadata
    assert (usage.prompt_token_count, usage.cached_content_token_count) == (10, 5)
    assert simulator.ledger().model("gemini", MODEL).cache_write_input_tokens == 0


@pytest.mark.parametrize("streamed", [False, True])
def test_function_call(simulator: Simulator, *, streamed: bool) -> None:
    config: dict[str, Any] = {"tools": [WEATHER], "automatic_function_calling": MANUAL}
    text = "use the tool"
    answer = stream(simulator, text, **config)[-1] if streamed else ask(simulator, text, **config)
    call = answer.candidates[0].content.parts[0].function_call
    assert (call.name, call.args) == ("weather", {"city": "text"})
    assert answer.candidates[0].finish_reason == "STOP"


def test_forced_function(simulator: Simulator) -> None:
    calling = types.FunctionCallingConfig(mode=types.FunctionCallingConfigMode.ANY)
    config = {"tool_config": types.ToolConfig(function_calling_config=calling), "tools": [WEATHER]}
    answer = ask(simulator, automatic_function_calling=MANUAL, **config)
    assert answer.candidates[0].content.parts[0].function_call.name == "weather"


def test_candidates_stop_length_and_json(simulator: Simulator) -> None:
    assert len(ask(simulator, candidate_count=3).candidates) == 3
    assert ask(simulator, "one two three", stop_sequences=["two"]).text == "echo: one "
    short = ask(simulator, "one two three", max_output_tokens=2)
    assert (short.text, short.candidates[0].finish_reason) == ("echo: on", "MAX_TOKENS")
    schema = {"type": "object", "properties": {"ok": {"type": "boolean"}}}
    structured = ask(simulator, response_mime_type="application/json", response_json_schema=schema)
    assert structured.parsed == {"ok": True}


def test_all_thinking_leaves_no_text(simulator: Simulator) -> None:
    simulator.configure(reasoning_tokens=100)
    thinking = types.ThinkingConfig(thinking_level=types.ThinkingLevel.HIGH)
    answer = ask(simulator, thinking_config=thinking, max_output_tokens=50)
    assert answer.candidates[0].finish_reason == "MAX_TOKENS"
    assert not answer.text
    assert answer.usage_metadata.thoughts_token_count == 50


def test_refusals(simulator: Simulator) -> None:
    refused = ask(simulator, "please refuse")
    assert (refused.text, refused.candidates[0].finish_reason) == (None, "SAFETY")
    blocked = ask(simulator, "please refuse the prompt")
    assert blocked.prompt_feedback.block_reason == "SAFETY"
    assert blocked.candidates is None
    assert stream(simulator, "please refuse the prompt")[0].prompt_feedback.block_reason == "SAFETY"


def test_logprobs(simulator: Simulator) -> None:
    result = (
        ask(simulator, "What is 200*200?", response_logprobs=True, logprobs=2).candidates[0].logprobs_result
    )
    assert [one.token for one in result.chosen_candidates] == ["4000", "0"]
    assert len(result.top_candidates[0].candidates) == 2


def test_context_length(simulator: Simulator) -> None:
    simulator.configure(context_window=100)
    with pytest.raises(errors.ClientError, match="exceeds the maximum number of tokens allowed"):
        ask(simulator, "x" * 500)


def test_both_api_versions_with_and_without_a_base_path(post: Post) -> None:
    body = {"contents": [{"parts": [{"text": "2+2"}]}]}
    for path in (f"/gemini/v1/models/{MODEL}", f"/gemini/v1beta/models/{MODEL}", f"/v1beta/models/{MODEL}"):
        answer = post(f"{path}:generateContent", body)
        assert answer.json["candidates"][0]["content"]["parts"] == [{"text": "4"}]
