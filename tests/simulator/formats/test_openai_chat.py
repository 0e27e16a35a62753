"""Chat completions through the openai SDK, either major version."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import openai
import pytest

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from llm_provider.simulator import Simulator

MODEL = "gpt-6.1-sol"
WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
        },
    },
}


def run(simulator: Simulator, work: Callable[[Any], Awaitable[Any]], provider: str = "openai") -> Any:
    async def main() -> Any:
        url = simulator.url(provider)
        async with openai.AsyncOpenAI(base_url=url, api_key="test-key", max_retries=0) as client:
            return await work(client.chat.completions)

    return asyncio.run(main())


def ask(text: str = "hello there friend", **fields: Any) -> dict[str, Any]:
    return {"model": MODEL, "messages": [{"role": "user", "content": text}], **fields}


async def streamed(chat: Any, **fields: Any) -> list[Any]:
    return [chunk async for chunk in await chat.create(**fields, stream=True)]


def test_answers_a_sum(simulator: Simulator) -> None:
    answer = run(simulator, lambda chat: chat.create(**ask("What is 12 + 30?")))
    assert answer.choices[0].message.content == "42"
    assert answer.choices[0].finish_reason == "stop"
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens, answer.usage.total_tokens) == (
        4,
        1,
        5,
    )


def test_stream_says_the_same_as_the_whole_answer(simulator: Simulator) -> None:
    whole = run(simulator, lambda chat: chat.create(**ask()))
    chunks = run(simulator, lambda chat: streamed(chat, **ask(), stream_options={"include_usage": True}))
    texts = [chunk.choices[0].delta.content for chunk in chunks if chunk.choices]
    assert texts[0] == ""
    assert "".join(filter(None, texts)) == whole.choices[0].message.content == "echo: hello there friend"
    assert len([text for text in texts if text]) == 4
    assert chunks[-1].choices == []
    assert chunks[-1].usage.model_dump() == whole.usage.model_dump()
    assert chunks[-2].choices[0].finish_reason == "stop"


def test_stream_without_include_usage_has_none(simulator: Simulator) -> None:
    chunks = run(simulator, lambda chat: streamed(chat, **ask()))
    assert all(chunk.usage is None for chunk in chunks)


def test_usage_totals_include_cache_and_reasoning(simulator: Simulator) -> None:
    simulator.configure(cached_tokens=3, cache_write_tokens=1, reasoning_tokens=50)
    usage = run(simulator, lambda chat: chat.create(**ask("What is 2+2 and more?"))).usage
    assert usage.prompt_tokens == 6
    assert usage.prompt_tokens_details.cached_tokens == 3
    assert usage.prompt_tokens_details.model_extra or usage.prompt_tokens_details.cache_write_tokens == 1
    assert usage.completion_tokens == 51
    assert usage.completion_tokens_details.reasoning_tokens == 50


@pytest.mark.parametrize("stream", [False, True])
def test_tool_call(simulator: Simulator, *, stream: bool) -> None:
    fields = ask("please use the tool", tools=[WEATHER])
    if stream:
        chunks = run(simulator, lambda chat: streamed(chat, **fields))
        deltas = [call for chunk in chunks for call in chunk.choices[0].delta.tool_calls or ()]
        assert len(deltas) > 2
        name, arguments = deltas[0].function.name, "".join(one.function.arguments for one in deltas)
        assert chunks[-1].choices[0].finish_reason == "tool_calls"
    else:
        choice = run(simulator, lambda chat: chat.create(**fields)).choices[0]
        function = choice.message.tool_calls[0].function
        name, arguments = function.name, function.arguments
        assert (choice.message.content, choice.finish_reason) == (None, "tool_calls")
    assert (name, json.loads(arguments)) == ("weather", {"city": "text", "days": 1})


def test_required_and_forbidden_tools(simulator: Simulator) -> None:
    def finish(choice: Any) -> str:
        fields = ask("use the tool" if choice == "none" else "hi", tools=[WEATHER], tool_choice=choice)
        return run(simulator, lambda chat: chat.create(**fields)).choices[0].finish_reason

    assert finish("required") == "tool_calls"
    assert finish({"type": "function", "function": {"name": "weather"}}) == "tool_calls"
    assert finish("none") == "stop"
    assert finish("auto") == "stop"


def test_samples_differ_only_where_they_are_wrong(simulator: Simulator) -> None:
    simulator.configure(error_rate=0.5)
    answer = run(simulator, lambda chat: chat.create(**ask("What is 20 + 20?"), n=20))
    texts = [choice.message.content for choice in answer.choices]
    assert 2 <= texts.count("40") <= 18
    again = run(simulator, lambda chat: chat.create(**ask("What is 20 + 20?"), n=20))
    assert [choice.message.content for choice in again.choices] == texts


def test_stop_and_length(simulator: Simulator) -> None:
    stopped = run(simulator, lambda chat: chat.create(**ask("one two three"), stop=["two"])).choices[0]
    assert (stopped.message.content, stopped.finish_reason) == ("echo: one ", "stop")
    short = run(simulator, lambda chat: chat.create(**ask("one two three"), max_completion_tokens=2))
    assert (short.choices[0].message.content, short.choices[0].finish_reason) == ("echo: on", "length")
    assert short.usage.completion_tokens == 2


def test_refusal(simulator: Simulator) -> None:
    choice = run(simulator, lambda chat: chat.create(**ask("please refuse"))).choices[0]
    assert (choice.message.content, choice.message.refusal) == (None, "I cannot help with that.")
    chunks = run(simulator, lambda chat: streamed(chat, **ask("please refuse")))
    assert "".join(chunk.choices[0].delta.refusal or "" for chunk in chunks) == "I cannot help with that."


def test_json_schema(simulator: Simulator) -> None:
    schema = {"type": "object", "properties": {"verdict": {"enum": ["yes", "no"]}}, "required": ["verdict"]}
    wanted = {"type": "json_schema", "json_schema": {"name": "verdict", "schema": schema}}
    answer = run(simulator, lambda chat: chat.create(**ask(), response_format=wanted))
    assert json.loads(answer.choices[0].message.content) == {"verdict": "yes"}


def test_logprobs(simulator: Simulator) -> None:
    answer = run(
        simulator, lambda chat: chat.create(**ask("What is 200*200?"), logprobs=True, top_logprobs=2)
    )
    tokens = answer.choices[0].logprobs.content
    assert [(one.token, len(one.top_logprobs)) for one in tokens] == [("4000", 2), ("0", 2)]


def test_hosts_that_differ(simulator: Simulator) -> None:
    together = run(simulator, lambda chat: chat.create(**ask(), extra_body={"logprobs": 3}), "together_ai")
    assert len(together.choices[0].logprobs.content[0].top_logprobs) == 3
    chunks = run(simulator, lambda chat: streamed(chat, **ask()), "mistral")
    assert chunks[-1].usage.completion_tokens == 6
    assert chunks[-1].choices[0].finish_reason == "stop"


def test_reasoning_text_is_for_compatible_hosts_only(simulator: Simulator) -> None:
    def message(provider: str) -> Any:
        fields = ask(reasoning_effort="low")
        return run(simulator, lambda chat: chat.create(**fields), provider).choices[0].message.model_extra

    assert "reasoning_content" not in message("openai")
    assert message("deepseek")["reasoning_content"].startswith("The user asks")
    assert message("openrouter")["reasoning"].startswith("The user asks")


def test_current_models_refuse_old_parameters(simulator: Simulator) -> None:
    for fields, code in (
        ({"max_tokens": 5}, "unsupported_parameter"),
        ({"temperature": 0}, "unsupported_value"),
    ):
        with pytest.raises(openai.BadRequestError) as caught:
            run(simulator, lambda chat, fields=fields: chat.create(**ask(), **fields))
        assert caught.value.code == code
    assert run(simulator, lambda chat: chat.create(**ask(), max_tokens=5, temperature=0), "groq")
    simulator.configure(reject_parameters=False)
    assert run(simulator, lambda chat: chat.create(**ask(), max_tokens=5, temperature=0))


def test_context_length(simulator: Simulator) -> None:
    simulator.configure(context_window=100)
    with pytest.raises(openai.BadRequestError) as caught:
        run(simulator, lambda chat: chat.create(**ask("x" * 500)))
    assert caught.value.code == "context_length_exceeded"


def test_request_identifier_and_snapshot(simulator: Simulator) -> None:
    simulator.configure(snapshot_suffix="-2026-10-21")
    answer = run(simulator, lambda chat: chat.create(**ask()))
    assert answer._request_id.startswith("req_")
    assert answer.model == "gpt-6.1-sol-2026-10-21"
