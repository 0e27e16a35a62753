"""The simulated prompt caches: steps, breakpoints and lifetime."""

from collections.abc import Callable
from typing import Any

import pytest

from llm_provider.simulator._behaviour.prompt_cache import PromptCaches
from llm_provider.simulator.formats import anthropic, openai_chat
from llm_provider.simulator.formats.wire_format import Prompt, Request

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
