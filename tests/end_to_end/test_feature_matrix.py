"""Every feature on every format in every way to call, with the real SDKs against the simulator.

A cell is a feature, a route and a way. It is answered, or refused by name before anything is sent, as the
documentation says. An answer is then also served from the cache, without a request. `make test` takes a
sample, in which each feature meets one route in one way; `make matrix` runs all cells.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Literal

import pytest

from llm_provider import Client, RequestError, Response
from llm_provider._core.requests.attachments import Attachment
from llm_provider.simulator import Simulator
from support import ask

MODELS = {
    "chat": "gpt-4o",
    "responses": "gpt-6.1-sol",
    "anthropic": "claude-haiku-4-5",
    "gemini": "gemini/gemini-2.5-flash",
    "interactions": "gemini/gemini-2.5-flash",
    "together": "together_ai/zai-org/GLM-5.3",
    "litellm": "litellm/openai/gpt-4o",
}
SERVERS = {
    "anthropic": "anthropic", "gemini": "gemini", "interactions": "gemini", "together": "together_ai"
}  # fmt: skip
"""Whom the simulator plays for a route that does not end at OpenAI."""
MORE: dict[str, dict[str, Any]] = {
    name: {"endpoint": name} for name in ("chat", "responses", "interactions")
}  # fmt: skip


@dataclass
class City:
    """The format of a structured answer."""

    name: str
    people: int


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@dataclass(frozen=True)
class Feature:
    """What a call asks for, and a check of its answer."""

    name: str
    parameters: Mapping[str, Any]
    check: Callable[[Response], object] = lambda response: response.text
    prompt: str = "What is 2+2?"
    files: tuple[Any, ...] = ()

    def __str__(self) -> str:
        return self.name


def plain(name: str, value: Any) -> Feature:
    return Feature(f"{name}={value!r:.20}", {name: value})


LARGE = {
    "type": "file",
    "file": {"file_data": Attachment("large", "application/pdf", 23_000_000, data=b"%PDF-1.7")},
}
"""A file that no request can hold, as far as the library is told."""


def calls_add(response: Response) -> bool:
    (call,) = response.tool_calls
    return call.name == "add" and call.parsed_arguments == {"a": 2, "b": 3}


def with_add(name: str, check: Callable[[Response], object] = calls_add, **parameters: Any) -> Feature:
    prompt = 'Please use the tool add({"a": 2, "b": 3})'
    return Feature(name, {"tools": [add], **parameters}, check, prompt)


FEATURES = (
    Feature("nothing", {}, lambda response: response.text == "4"),
    *(
        plain(name, value)
        for name, value in {
            "system": "Be brief.",
            "max_tokens": 300,
            "temperature": 0,
            "top_p": 0.5,
            "top_k": 10,
            "frequency_penalty": 0.5,
            "presence_penalty": 0.5,
            "logit_bias": {50256: -100},
            "stop": ["END"],
            "seed": 7,
            "logprobs": True,
            "user": "user-1",
            "metadata": {"run": "1"},
            "store": False,
            "prompt_cache_key": "key",
            "service_tier": "auto",
            "verbosity": "low",
            "reasoning_effort": "low",
            "reasoning_summary": "auto",
            "thinking_budget": 1024,
            "reasoning_context": "all_turns",
            "cached_content": "cachedContents/abc",
            "safety_settings": {"HARM_CATEGORY_HARASSMENT": "BLOCK_NONE"},
            "modalities": ["text"],
            "extra_headers": {"X-Trace": "1"},
        }.items()
    ),
    Feature("n=2", {"n": 2}, lambda response: len(response.texts) == 2),
    Feature("a dataclass", {"response_format": City}, lambda response: isinstance(response.parsed, City)),
    Feature("list[int]", {"response_format": list[int]}, lambda response: type(response.parsed) is list),
    Feature(
        "Literal", {"response_format": Literal["a", "b"]}, lambda response: response.parsed in ("a", "b")
    ),
    Feature(
        "a JSON schema",
        {"response_format": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}},
        lambda response: type(response.parsed["a"]) is int,
    ),
    with_add("a function as a tool"),
    with_add("parallel_tool_calls=False", parallel_tool_calls=False),
    with_add("allowed_tools", allowed_tools=["add"]),
    with_add(
        "tool rounds",
        lambda response: len(response.rounds) == 2 and response.tool_results[0].content == "5",
        max_tool_rounds=3,
    ),
    with_add("a chosen tool", tool_choice=add),
    Feature("prompt_caching", {"prompt_caching": True}),
    Feature("explicit prompt_caching", {"prompt_caching": "explicit"}),
    Feature("an image", {}, files=(b"\x89PNG\r\n\x1a\n",)),
    Feature("an uploaded PDF", {}, files=(LARGE,)),
)


REFUSED = {
    "temperature": "responses",
    "top_p": "responses",
    "top_k": "chat responses interactions",
    "frequency_penalty": "responses anthropic interactions",
    "presence_penalty": "responses anthropic interactions",
    "logit_bias": "responses anthropic gemini interactions",
    "stop": "responses",
    "seed": "responses anthropic",
    "logprobs": "responses anthropic interactions",
    "user": "gemini interactions",
    "metadata": "anthropic gemini together litellm interactions",
    "prompt_cache_key": "anthropic gemini together interactions",
    "service_tier": "together",
    "verbosity": "chat anthropic gemini together litellm interactions",
    "reasoning_effort": "chat litellm",
    "reasoning_summary": "chat anthropic together litellm",
    "thinking_budget": "chat responses together litellm interactions",
    "reasoning_context": "chat anthropic gemini together litellm interactions",
    "cached_content": "chat responses anthropic together litellm",
    "safety_settings": "chat responses anthropic together",
    "parallel_tool_calls": "gemini interactions",
    "allowed_tools": "anthropic together litellm",
    "an uploaded PDF": "together litellm",
}
"""The routes whose models, those of `MODELS`, do not have a feature."""

WAYS = ("call", "acall", "stream", "astream", "call_many")


def cells() -> Iterator[Any]:
    """Every cell; those that are not in the sample have a mark."""
    sampled = [route for route in MODELS if route != "litellm"]  # its import takes as long as all other cells
    for position, feature in enumerate(FEATURES):
        kept = sampled[position % len(sampled)], WAYS[(position + position // len(sampled)) % len(WAYS)]
        for route in MODELS:
            for way in WAYS:
                marks = () if (route, way) == kept else (pytest.mark.matrix,)
                if route == "litellm":
                    absent = find_spec("litellm") is None
                    marks = (*marks, pytest.mark.skipif(absent, reason="litellm is not installed here"))
                yield pytest.param(feature, route, way, id=f"{feature}-{route}-{way}", marks=marks)


@pytest.fixture(scope="module")
def server() -> Iterator[Simulator]:
    with Simulator() as simulator:
        yield simulator


@pytest.fixture(scope="module")
def bench(server: Simulator, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """One client for all cells."""
    keys = dict.fromkeys(("openai", "anthropic", "gemini", "together_ai", "litellm"), "key")
    with Client(cache_dir=tmp_path_factory.mktemp("cache"), keys=keys) as client:
        yield client


@pytest.mark.parametrize(("feature", "route", "way"), list(cells()))
def test_a_feature(feature: Feature, route: str, way: str, bench: Client, server: Simulator) -> None:
    parameters = {
        "base_url": server.url(SERVERS.get(route, "openai")),
        **MORE.get(route, {}),
        **feature.parameters,
    }
    # A prompt of its own, so that the cells do not answer each other from the cache.
    text = f"{feature}, {way}. {feature.prompt}"
    arguments = MODELS[route], [text, *feature.files] if feature.files else text
    server.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # litellm's, and those of values that a provider takes in another way
        try:
            response = ask(bench, way, *arguments, **parameters)
        except RequestError:
            assert route in REFUSED.get(feature.name.partition("=")[0], "").split()
            assert server.requests() == []
            return
        assert route not in REFUSED.get(feature.name.partition("=")[0], "").split()
        assert feature.check(response), response
        assert response.usage.input_tokens > 0
        sent = server.ledger().requests
        again = ask(bench, way, *arguments, **parameters)
    assert feature.check(again)
    assert (again.texts, again.cached) == (response.texts, True)
    assert server.ledger().requests == sent > 0


def test_the_sample_has_every_feature_route_and_way() -> None:
    sample = [cell.values for cell in cells() if not any(mark.name == "matrix" for mark in cell.marks)]
    assert [feature for feature, _, _ in sample] == list(FEATURES)
    assert {route for _, route, _ in sample} == MODELS.keys() - {"litellm"}
    assert {way for _, _, way in sample} == set(WAYS)
