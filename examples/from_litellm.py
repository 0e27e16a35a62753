"""Twelve pieces of code as users of litellm write them, and the same work with this package.

    python examples/from_litellm.py    a simulator answers both; needs no API key, but the extra `litellm`

Each function returns what litellm's code gives and what ours gives. The script fails if they differ.
"""

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import Callable
from typing import Any

from pydantic import BaseModel

from llm_provider.simulator import Fault, Simulator

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else the import asks the network

import litellm

import llm_provider
from llm_provider import Client, acall_many, astream, call, call_many, count_tokens, embed, stream

MODEL, OTHER = "gpt-4.1-mini", "anthropic/claude-haiku-4-5"
MESSAGES = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "What is 2+2?"}]
CONVERSATIONS = [[{"role": "user", "content": f"What is {number} + 1?"}] for number in range(20)]
Pair = tuple[Any, Any]


class City(BaseModel):
    """An answer with a form."""

    name: str
    country: str


def weather(city: str) -> str:
    """The weather of a city."""
    return f"sunny in {city}"


TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather of a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


def completion(_: Simulator) -> Pair:
    """A call."""
    response = litellm.completion(model=MODEL, messages=MESSAGES, temperature=0, num_retries=3)
    theirs = response.choices[0].message.content, response.usage.prompt_tokens

    answer = call(MODEL, MESSAGES, temperature=0)  # ten retries are the default
    return theirs, (answer.text, answer.usage.input_tokens)


def acompletion_with_a_semaphore(_: Simulator) -> Pair:
    """Many calls at once."""

    async def theirs() -> list[str]:
        semaphore = asyncio.Semaphore(5)

        async def ask(messages: list[Any]) -> str:
            async with semaphore:
                response = await litellm.acompletion(model=MODEL, messages=messages)
                return response.choices[0].message.content

        return await asyncio.gather(*map(ask, CONVERSATIONS))

    async def ours() -> list[str | None]:
        return (await acall_many(MODEL, CONVERSATIONS)).texts  # the rate adapts: no semaphore

    return asyncio.run(theirs()), asyncio.run(ours())


def completion_stream(_: Simulator) -> Pair:
    """A stream."""
    theirs = ""
    for chunk in litellm.completion(model=MODEL, messages=MESSAGES, stream=True):
        theirs += chunk.choices[0].delta.content or ""

    ours = ""
    with stream(MODEL, MESSAGES) as deltas:
        for delta in deltas:
            ours += delta.text
    return theirs, ours


def acompletion_stream(_: Simulator) -> Pair:
    """A stream in asynchronous code."""

    async def theirs() -> str:
        response = await litellm.acompletion(model=OTHER, messages=MESSAGES, stream=True)
        return "".join([chunk.choices[0].delta.content or "" async for chunk in response])

    async def ours() -> str:
        async with astream(OTHER, MESSAGES) as deltas:
            return "".join([delta.text async for delta in deltas])

    return asyncio.run(theirs()), asyncio.run(ours())


def embedding(_: Simulator) -> Pair:
    """Vectors of texts."""
    response = litellm.embedding(model="text-embedding-3-small", input=["a bird", "a fish"])
    theirs = [item["embedding"] for item in response.data]

    ours = embed("text-embedding-3-small", ["a bird", "a fish"])  # each text is cached by itself
    return [round(vector[0], 6) for vector in theirs], [round(vector[0], 6) for vector in ours.vectors]


def function_calling(_: Simulator) -> Pair:
    """A round of function calling."""
    messages: list[Any] = [{"role": "user", "content": 'Use the tool weather({"city": "Bern"}).'}]
    # Without this argument, litellm's tools need the package `mcp`.
    arguments: Any = {"model": MODEL, "tools": [TOOL], "_skip_mcp_handler": True}
    response = litellm.completion(messages=messages, **arguments)
    messages.append(response.choices[0].message)
    for tool_call in response.choices[0].message.tool_calls:
        content = weather(**json.loads(tool_call.function.arguments))
        messages.append({"role": "tool", "tool_call_id": tool_call.id, "content": content})
    theirs = litellm.completion(messages=messages, **arguments).choices[0].message.content

    return theirs, call(MODEL, messages[0]["content"], tools=[weather], max_tool_rounds=5).text


def response_format(_: Simulator) -> Pair:
    """A typed answer."""
    response = litellm.completion(model=MODEL, messages=MESSAGES, response_format=City)
    theirs = City.model_validate_json(response.choices[0].message.content)

    return theirs, call(MODEL, MESSAGES, response_format=City).parsed  # checked, and repaired if wrong


def batch_completion(_: Simulator) -> Pair:
    """Many conversations."""
    responses = litellm.batch_completion(model=MODEL, messages=CONVERSATIONS)
    theirs = [response.choices[0].message.content for response in responses]

    return theirs, call_many(MODEL, CONVERSATIONS).texts


def router_with_fallbacks(simulator: Simulator) -> Pair:
    """Another model where the first one is down."""
    simulator.inject(Fault(status=503), provider="openai", times=None, match="7 * 6")
    question = [{"role": "user", "content": "What is 7 * 6?"}]
    router = litellm.Router(
        model_list=[
            {"model_name": "small", "litellm_params": {"model": MODEL, "rpm": 500}},
            {"model_name": "other", "litellm_params": {"model": OTHER, "rpm": 500}},
        ],
        fallbacks=[{"small": ["other"]}],
        num_retries=0,
    )
    theirs = router.completion(model="small", messages=question).choices[0].message.content

    # No `rpm`: the limits are learned. `outage_patience` is how long a provider that is down is waited for.
    answer = call(MODEL, question, fallback=[OTHER], outage_patience=0, max_retries=0)
    assert answer.passed_over[0].model == MODEL
    return theirs, answer.text


def costs_and_tokens(_: Simulator) -> Pair:
    """What a call costs, and what a prompt counts."""
    response = litellm.completion(model=MODEL, messages=MESSAGES)
    theirs = round(litellm.completion_cost(completion_response=response), 9)
    assert litellm.token_counter(model=MODEL, messages=MESSAGES) > 0

    answer = call(MODEL, MESSAGES, cache="off")
    assert count_tokens(MODEL, MESSAGES).high > 0  # with its bounds, and how it was counted
    return theirs, answer.cost


def disk_cache(simulator: Simulator) -> Pair:
    """The same question twice."""
    question = [{"role": "user", "content": "What is 30 + 12?"}]
    # With `litellm.cache = litellm.Cache(type="disk")` before it, and the packages `diskcache` and `fastapi`.
    theirs = litellm.completion(model=MODEL, messages=question, caching=True).choices[0].message.content

    before = simulator.ledger().requests
    answers = [call(MODEL, question) for _ in range(2)]  # nothing to switch on
    assert (simulator.ledger().requests - before, answers[1].cached, answers[1].cost) == (1, True, 0)
    return theirs, answers[1].text


def callbacks_and_exceptions(simulator: Simulator) -> Pair:
    """What is told of a call that fails."""
    simulator.inject(Fault(status=429, retry_after="0"), times=None, match="too fast")
    question = [{"role": "user", "content": "too fast"}]
    told: list[str] = []
    try:
        litellm.completion(model=MODEL, messages=question, num_retries=1)
    except litellm.exceptions.RateLimitError as error:
        theirs = type(error).__name__, error.status_code

    # `on_result` gets every answer and every error; `ledger="calls.jsonl"` writes a line for each request.
    with Client(on_result=lambda result: told.append(type(result).__name__)) as client:
        try:
            client.call(MODEL, question, max_retries=1)
        except llm_provider.RateLimitError as error:
            ours = type(error).__name__, error.status
    assert told == ["RateLimitError"]
    return theirs, ours


SNIPPETS: list[Callable[[Simulator], Pair]] = [
    completion, acompletion_with_a_semaphore, completion_stream, acompletion_stream, embedding,
    function_calling, response_format, batch_completion, router_with_fallbacks, costs_and_tokens, disk_cache,
    callbacks_and_exceptions,
]  # fmt: skip


def main() -> None:
    """Run every pair against one simulator, with a cache of its own."""
    with Simulator() as simulator, tempfile.TemporaryDirectory() as cache:
        os.environ.update(simulator.environment(), LLM_PROVIDER_CACHE_DIR=cache)
        for snippet in SNIPPETS:
            theirs, ours = snippet(simulator)
            print(f"{snippet.__name__:29} {'the same' if theirs == ours else 'DIFFERENT'}: {str(ours)[:60]}")
            if theirs != ours:
                sys.exit(f"litellm: {theirs}\nhere:    {ours}")


if __name__ == "__main__":
    main()
