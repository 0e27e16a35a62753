"""The simulated prompt caches: minimum, steps, breakpoints, lifetime, routing and usage."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from llm_provider.simulator._behaviour.prompt_cache import MACHINES, PromptCaches
from llm_provider.simulator.formats import anthropic, gemini, openai_chat, openai_responses
from llm_provider.simulator.formats.wire_format import Prompt, Request

if TYPE_CHECKING:
    from llm_provider.simulator import Simulator

    from ..conftest import Post

LONG = "w" * 8000
"""2,000 tokens."""
CONTROL = {"cache_control": {"type": "ephemeral"}}
BREAKPOINT = {"prompt_cache_breakpoint": {"mode": "explicit"}}


def prompt(provider: str, body: dict[str, Any], path: str = "", form: Any = openai_chat) -> Prompt:
    found = form.read(Request(provider, body, {}, path))
    assert isinstance(found, Prompt)
    return found


def claude(question: str = "Hi", model: str = "claude-sonnet-5-5", system: str = LONG) -> Prompt:
    body = {"model": model, "max_tokens": 9, "system": [{"type": "text", "text": system, **CONTROL}],
            "messages": [{"role": "user", "content": question}]}  # fmt: skip
    return prompt("anthropic", body, form=anthropic)


def gpt(question: str = "Hi", model: str = "gpt-5.5", marked: bool = False, **fields: Any) -> Prompt:
    part = {"type": "text", "text": LONG, **(BREAKPOINT if marked else {})}
    messages = [{"role": "system", "content": [part]}, {"role": "user", "content": question}]
    return prompt("openai", {"model": model, "messages": messages, **fields})


Use = Callable[..., tuple[int, int]]


@pytest.fixture
def use() -> Use:
    """Tokens read and written by a request that is answered at once, with the caches of one test."""
    caches = PromptCaches()

    def measure(prompt: Prompt, now: float, account: str = "k") -> tuple[int, int]:
        use = caches.use(prompt, account, now)
        assert use is not None
        use.keep(now)
        return use.read, use.written

    return measure


def test_anthropic_reads_what_a_breakpoint_wrote(use: Use) -> None:
    assert use(claude("1"), 0) == (0, 2000)
    assert use(claude("2"), 299) == (2000, 0)
    # The read has begun five new minutes.
    assert use(claude("3"), 598) == (2000, 0)
    assert use(claude("4"), 898.5) == (0, 2000)
    assert use(claude("5"), 899, account="other") == (0, 2000)
    assert use(claude("5", "claude-haiku-4-5"), 899) == (0, 0)
    assert use(claude("5", system="w" * 2000), 899) == (0, 0)


def test_an_entry_is_read_only_after_the_answer_has_begun() -> None:
    caches = PromptCaches()
    uses = [caches.use(claude(str(number)), "k", 0) for number in range(3)]
    assert [(use.read, use.written) for use in uses if use] == [(0, 2000)] * 3


def test_a_longer_prefix_reads_the_shorter_one(use: Use) -> None:
    use(claude(), 0)
    messages = [{"role": "user", "content": [{"type": "text", "text": "x" * 4000, **CONTROL}]}]
    body = {**claude().request.body, "messages": messages}
    assert use(prompt("anthropic", body, form=anthropic), 1) == (2000, 1000)


def test_openai_caches_in_steps_of_128_tokens_for_nothing(use: Use) -> None:
    assert use(gpt("1", prompt_cache_key="a"), 0) == (0, 0)
    assert use(gpt("2", prompt_cache_key="a"), 1) == (1920, 0)
    assert use(gpt("3", prompt_cache_key="b"), 1) == (0, 0)
    assert use(gpt("4", prompt_cache_key="a"), 400) == (0, 0)


def test_without_a_key_requests_meet_several_caches(use: Use) -> None:
    reads = [use(gpt(str(number)), 0)[0] for number in range(3 * MACHINES)]
    assert reads == [0] * MACHINES + [1920] * 2 * MACHINES


@pytest.mark.parametrize("model", ["gpt-5.6-luna", "gpt-6.1-sol"])
def test_newer_models_cache_at_breakpoints_for_a_price(use: Use, model: str) -> None:
    key = {"prompt_cache_key": "a"}
    # By itself OpenAI writes up to the newest message, which no other question has.
    assert use(gpt("1", model, **key), 0) == (0, 2001)
    assert use(gpt("2", model, **key), 0) == (0, 2001)
    explicit = {**key, "prompt_cache_options": {"mode": "explicit"}}
    assert use(gpt("3", model, marked=True, **explicit), 0) == (0, 2000)
    assert use(gpt("4", model, marked=True, **explicit), 1799) == (2000, 0)
    assert use(gpt("5", model, **explicit), 1799) == (0, 0)


def test_the_responses_format_is_read_too(use: Use) -> None:
    content = [{"type": "input_text", "text": LONG, **BREAKPOINT}]
    body = {"model": "gpt-6.1-sol", "input": [{"role": "system", "content": content},
            {"role": "user", "content": "Hi"}], "prompt_cache_options": {"mode": "explicit"},
            "prompt_cache_key": "a"}  # fmt: skip
    one = prompt("openai", body, form=openai_responses)
    assert [use(one, 0), use(one, 0)] == [(0, 2000), (2000, 0)]


def test_gemini_finds_common_prefixes_by_itself(use: Use) -> None:
    path = "/v1/models/gemini-3.8-flash:generateContent"
    for question, expected in (("1", 0), ("2", 4992)):
        body = {"systemInstruction": {"parts": [{"text": "w" * 20_000}]},
                "contents": [{"role": "user", "parts": [{"text": question}]}]}  # fmt: skip
        assert use(prompt("gemini", body, path, gemini), 0) == (expected, 0)


def test_other_hosts_have_no_cache() -> None:
    assert PromptCaches().use(prompt("groq", gpt().request.body), "k", 0) is None


def test_the_reply_and_the_bill_have_the_tokens(simulator: Simulator, post: Post) -> None:
    simulator.configure(prompt_cache=True)
    body = dict(claude().request.body)
    for written, read in ((2000, 0), (0, 2000)):
        usage = post("/anthropic/v1/messages", body).json["usage"]
        assert (usage["cache_creation_input_tokens"], usage["cache_read_input_tokens"]) == (written, read)
        assert usage["input_tokens"] == 1
    counts = simulator.ledger().model("anthropic", "claude-sonnet-5-5")
    assert (counts.cache_write_input_tokens, counts.cache_read_input_tokens) == (2000, 2000)
    simulator.clear()
    simulator.configure(prompt_cache=True)
    assert post("/anthropic/v1/messages", body).json["usage"]["cache_read_input_tokens"] == 0
