"""A call from a template equals the call that is encoded by itself, byte by byte, on every route.

The template is that of a batch, or one that a client remembers for its single calls.
"""

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from llm_provider import Client, LLMError, RequestError, track
from llm_provider._core.formats.protocol import Adapter, EncodedRequest
from llm_provider._core.journey.call import MAX_REQUEST_BYTES, Call
from llm_provider._core.journey.chat import CHAT, Chat
from llm_provider._core.journey.templates import Template, find_template
from llm_provider._core.pace.call_limits import Concurrency
from llm_provider._core.requests.request import Request
from llm_provider._core.requests.routing import ROUTES, Target
from llm_provider._core.runtime import cassette
from llm_provider._core.types.messages import Prompt
from llm_provider._features.hosts.compatible_hosts import HOSTS
from llm_provider.simulator import Simulator

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
    """The call of a prompt that is encoded by itself."""
    request = operation.build(model, prompt, {**parameters}, "call")
    return client._engine.prepare(operation, request, Concurrency(4, 4))


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


# --- the templates of single calls

PLAIN: dict[str, st.SearchStrategy[Any]] = {
    "system": st.sampled_from(["Be brief.", "\u2028{}"]),
    "max_tokens": st.sampled_from([1, 16, True, None]),
    "temperature": st.sampled_from([0, 0.0, -0.0, 1, 1.0, 0.5]),
    "top_p": st.sampled_from([1, 1.0, 0.1]),
    "stop": st.sampled_from(["END", ["END"]]),
    "seed": st.sampled_from([0, 1, False, 1.0]),
    "n": st.integers(1, 2),
    "draw": st.integers(0, 1),
    "logprobs": st.sampled_from([True, False, 1]),
    "reasoning_effort": st.sampled_from(["low", "none"]),
    "endpoint": st.sampled_from(["chat", "responses"]),
    "timeout": st.sampled_from([5, 5.0]),
    "deadline": st.just(5),
    "budget": st.just(1),
    "outage_patience": st.sampled_from([0, 7]),
    "cache": st.sampled_from(["off", False, "refresh", True]),
    "base_url": st.sampled_from(["http://127.0.0.1:9/v1", "http://127.0.0.1:9"]),
    "api_key": st.sampled_from(["key-of-one", "key-of-another"]),
    "user": st.sampled_from(["a", "b"]),
    "unsupported": st.just("drop"),
    "service_tier": st.just("flex"),
    "prompt_caching": st.just(True),
    "extra_headers": st.just({"x-experiment": "7"}),
}
"""Values that compare equal and are not the same, and parameters whose calls have no template."""


MANY = 20
"""Equal calls after which a client has a template of them."""


def asked(client: Client, parameters: dict[str, Any], prompt: Any = "Hi", model: str = MODEL) -> Call:
    """The call that the client makes."""
    return client._runner.prepare(CHAT, model, prompt, {**parameters}, Concurrency(4, 4))


def templates_of(client: Client) -> list[Template]:
    return [known for known in client._engine.templates.values() if isinstance(known, Template)]


def outcome_of(prepare: Callable[[], Call]) -> Any:
    try:
        call = prepare()
    except (LLMError, TypeError) as error:
        return type(error), str(error)
    attributes = attributes_of(call)
    budget = attributes["request"].budget
    if budget is not None:
        attributes["request"] = dataclasses.replace(attributes["request"], budget=None)
    return {
        **attributes,
        "deadline": call.deadline and call.deadline.allowed,
        "patience": (call.patience.seconds, call.patience.is_default),
        "body": [call.body, *(CHAT.body(call, parts) for parts in CHAT.groups(call, call.parts))],
        "keys": list(map(call.key, call.parts)),
        "budget": None if budget is None else budget.limit,
        "types": [type(value) for value in call.request.parameters_to_send.values()],
    }


PROMPTS = st.one_of(
    st.text(max_size=20), st.sampled_from([" ", None, "\ud800"]), st.just([{"role": "user", "content": "Hi"}])
)


@pytest.mark.filterwarnings("ignore:.* does not accept")
@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(sorted(MODELS.values())),
    st.lists(st.fixed_dictionaries({}, optional=PLAIN), min_size=1, max_size=3),
    PROMPTS,
)
def test_what_a_client_remembers_changes_no_call(
    client: Client, model: str, several: list[dict[str, Any]], prompt: Any
) -> None:
    for parameters in several * MANY:
        with contextlib.suppress(LLMError):
            asked(client, parameters, "Hi", model)
    for parameters in several:
        plain = outcome_of(functools.partial(prepared, client, model, prompt, parameters))
        assert outcome_of(functools.partial(asked, client, parameters, prompt, model)) == plain


def test_each_call_has_what_is_its_own() -> None:
    with Client() as client:
        calls = [asked(client, {"user": "a"}, f"{number}") for number in range(MANY)]
        assert len(templates_of(client)) == 1
        assert [call.request.messages[0]["content"] for call in calls] == [str(n) for n in range(MANY)]
        for of_call in (lambda call: call.patience, lambda call: call.encoded.payload["messages"]):
            assert len({id(of_call(call)) for call in calls}) == MANY
        with track("mine"):
            assert asked(client, {"user": "a"}).tracks.tag == "mine"
        assert asked(client, {"user": "a"}).tracks.tag == ""
        for own in ({"budget": 1.0}, {"token_budget": 9}, {"deadline": 5.0}):
            calls = [asked(client, own) for _ in range(MANY)]
            limits = [call.request.budget or call.request.token_budget or call.deadline for call in calls]
            assert len({id(limit) for limit in limits}) == MANY
        assert len(templates_of(client)) == 1
    with pytest.raises(RuntimeError, match="closed"):
        asked(client, {"user": "a"})


def test_what_the_environment_says_now_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    with Client() as client:
        for server in ("http://127.0.0.1:1/v1", "http://127.0.0.1:2/v1", "http://127.0.0.1:1/v1"):
            monkeypatch.setenv("OPENAI_BASE_URL", server)
            assert {asked(client, {}).target.base_url for _ in range(MANY)} == {server}
            assert len(templates_of(client)) == 1
        monkeypatch.delenv("OPENAI_BASE_URL")
        for version in ("v1", "v1beta"):
            monkeypatch.setenv("GOOGLE_GENAI_API_VERSION", version)
            calls = [asked(client, {}, model="gemini-3.8-flash") for _ in range(MANY)]
            assert all(version in call.encoded.operation.split("/") for call in calls)
            assert len(templates_of(client)) == 2
        for seed in (1, 1, 2):
            with cassette.using("replay:/nowhere"):
                assert {asked(client, {"seed": seed}, model="gpt-4.1").cache for _ in range(MANY)} == {"only"}
            assert {asked(client, {"seed": seed}, model="gpt-4.1").cache for _ in range(MANY)} == {"use"}


def test_few_sets_of_parameters_are_remembered_and_only_those_of_many_calls() -> None:
    with Client() as client:
        for seed in range(200):
            asked(client, {"seed": seed}, model="gpt-4.1")
        assert len(client._engine.templates) <= 64
        assert not templates_of(client)
        for number in range(MANY):
            asked(client, {}, f"{number}")
        assert len(templates_of(client)) == 1


def test_threads_share_a_template_and_a_new_client_finds_their_answers(
    simulator: Simulator, own_cache: Path
) -> None:
    prompts = [f"Repeat: {number}" for number in range(4 * MANY)]
    with Client(cache_dir=own_cache) as client, ThreadPoolExecutor(4) as threads:
        ask = functools.partial(client.call, MODEL, user="a")
        answers = list(threads.map(ask, prompts))
        assert len(templates_of(client)) == 1
        assert [answer.prompt for answer in answers] == prompts
        assert len({answer.cache_keys for answer in answers}) == len(prompts)
    with Client(cache_dir=own_cache, cache="only") as other:
        for answer in answers[:2]:
            assert other.call(MODEL, answer.prompt, user="a").text == answer.text
    assert simulator.ledger().requests == len(prompts)
