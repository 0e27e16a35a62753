"""A call from a template equals the call that is encoded by itself, byte by byte, on every route."""

import dataclasses
import functools
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from llm_provider import Client, LLMError, RequestError
from llm_provider._core.batches.lookup import Template, find_template
from llm_provider._core.formats.protocol import Adapter, EncodedRequest
from llm_provider._core.journey.call import MAX_REQUEST_BYTES, Call
from llm_provider._core.journey.chat import CHAT, Chat
from llm_provider._core.pace.call_limits import Concurrency
from llm_provider._core.requests.request import Request
from llm_provider._core.requests.routing import ROUTES, Target
from llm_provider._core.types.messages import Prompt
from llm_provider._features.hosts.compatible_hosts import HOSTS

MODELS = {
    "openai": "gpt-6.1-sol",
    "openai, older": "gpt-4.1",
    "openai, Responses": "gpt-5.5-pro",
    "anthropic": "claude-sonnet-5-5",
    "anthropic, older": "claude-3-5-haiku-20241022",
    "gemini": "gemini-3.8-flash",
    "litellm, Claude": "litellm/anthropic/claude-sonnet-5-5",
    **{
        provider: f"{provider}/some/model"
        for provider in ROUTES.keys() - HOSTS.keys() - {"openai", "anthropic"}
    },
}
TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
PARAMETERS: dict[str, st.SearchStrategy[Any]] = {
    "system": st.sampled_from(["Be brief.", " ", "\u2028{}"]),
    "max_tokens": st.integers(1, 4096),
    "temperature": st.sampled_from([0.0, 0.5, 1]),
    "stop": st.sampled_from(["END", ["a", "b"]]),
    "seed": st.integers(0, 99),
    "n": st.integers(1, 3),
    "draw": st.integers(0, 9),
    "tools": st.just([TOOL]),
    "response_format": st.just({"type": "json_object"}),
    "extra_body": st.sampled_from(
        [{"metadata": {"user": "u"}}, {"messages": []}, {"contents": "x"}, {"service_tier": "flex"}]
    ),
    "extra_headers": st.just({"x-experiment": "7"}),
    "base_url": st.just("http://127.0.0.1:9/v1"),
    "cache": st.sampled_from(["refresh", "off", "only"]),
}
MODEL = "gpt-6.1-sol"


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with Client() as client:
        yield client


def prepared(
    client: Client, model: str, prompt: Prompt, parameters: dict[str, Any], operation: Chat = CHAT
) -> Call:
    return client._runner.prepare(operation, model, prompt, {**parameters}, Concurrency(4, 4))


def template_of(client: Client, model: str, **parameters: Any) -> Template | None:
    return find_template(lambda prompt: prepared(client, model, prompt, parameters))


def attributes_of(call: Call) -> dict[str, Any]:
    """All that makes a call but when it was made, and what was computed for it."""
    attributes = {field.name: getattr(call, field.name) for field in dataclasses.fields(call)}
    return {**attributes, "started": 0, "first_key": None, "patience": call.patience.seconds}


@pytest.mark.filterwarnings("ignore:Anthropic's API has no response_format")
@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(sorted(MODELS.values())),
    st.fixed_dictionaries({}, optional=PARAMETERS),
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1),
)
@example("gpt-6.1-sol", {}, "null")
@example("gemini-3.8-flash", {"system": "the same"}, "the same")
@example("claude-sonnet-5-5", {"stop": "END"}, " \n ")
def test_a_prompt_filled_in_is_the_prompt_encoded(
    client: Client, model: str, parameters: dict[str, Any], prompt: str
) -> None:
    try:
        slow = prepared(client, model, prompt, parameters)
    except LLMError as error:
        # What is wrong for all is found without a prompt. A blank prompt is found when it is encoded.
        if prompt.isspace():
            return
        with pytest.raises(type(error)):
            template_of(client, model, **parameters)
        return
    alike = template_of(client, model, **parameters)
    own = "messages" in parameters.get("extra_body", {}) or "contents" in parameters.get("extra_body", {})
    if alike is None:
        assert own, "only who overwrites the messages has none"
        return
    key = alike.key(prompt)
    if prompt.isspace():
        assert key is None
        return
    filled = alike.fill_in(prompt, started=0.0)
    assert attributes_of(filled) == attributes_of(slow)
    assert key == filled.key(slow.request.draw) == slow.key(slow.request.draw)
    assert alike.fill_in(prompt, started=0.0, key="known").key(slow.request.draw) == "known"
    parts = range(3 if slow.encoded.samples_field else 1)
    assert CHAT.body(filled, parts) == CHAT.body(slow, parts)


def test_a_prompt_that_is_too_large_is_refused(client: Client) -> None:
    alike = template_of(client, MODEL)
    around = len(alike.fill_in("", 0.0).body)
    assert alike.fits("x" * (MAX_REQUEST_BYTES - around)) is not None
    assert alike.fits("x" * (MAX_REQUEST_BYTES - around + 1)) is None
    with pytest.raises(RequestError, match=r"30\.0 MB"):
        prepared(client, MODEL, "x" * (MAX_REQUEST_BYTES - around + 1), {})


def test_an_encoder_that_reads_prompts_has_no_template(client: Client) -> None:
    def trim(prompt: str, encoded: EncodedRequest) -> None:
        encoded.payload["messages"][-1]["content"] = prompt.strip()

    def count(prompt: str, encoded: EncodedRequest) -> None:
        encoded.payload["prompt_length"] = hash(prompt)

    def tell_elsewhere(prompt: str, encoded: EncodedRequest) -> None:
        encoded.headers = {"x-prompt": str(hash(prompt))}

    class Reading(Chat):
        def encode(self, request: Request, target: Target, adapter: Adapter) -> EncodedRequest:
            encoded = super().encode(request, target, adapter)
            self.read(request.messages[-1]["content"], encoded)
            return encoded

    operation = Reading()
    prepare = functools.partial(prepared, client, MODEL, parameters={}, operation=operation)
    for operation.read in (trim, count, tell_elsewhere):
        assert find_template(prepare) is None
    operation.read = lambda prompt, encoded: None
    assert find_template(prepare) is not None
