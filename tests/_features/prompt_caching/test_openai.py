"""Keys and breakpoints in both of OpenAI's formats."""

from typing import Any

import pytest

from llm_provider._features.prompt_caching import openai as prompt_cache
from llm_provider._features.prompt_caching.settings import PrefixMark

from .test_settings import LONG, TOOL, encoded

EXPLICIT = {"mode": "explicit"}


def sent(model: str, messages: Any, mark: PrefixMark | None = None, **parameters: Any) -> dict[str, Any]:
    request = encoded(model, messages, **parameters)
    request.prefix = mark or request.prefix
    return request.add_labels(request.payload)


def test_older_models_get_a_key_only() -> None:
    payload = sent("gpt-5.5", "Hi", system=LONG)
    key = payload.pop("prompt_cache_key")
    assert payload == encoded("gpt-5.5", "Hi", system=LONG).payload
    assert key == sent("gpt-5.5", "Bye", system=LONG)["prompt_cache_key"]
    assert key != sent("gpt-5.5", "Hi", system=LONG + "!")["prompt_cache_key"]
    assert 0 < len(key) <= 64
    assert sent("gpt-5.5", "Hi", system=LONG, prompt_cache_key="mine")["prompt_cache_key"] == "mine"


TURNS = [{"role": "user", "content": LONG}, {"role": "assistant", "content": "Yes."}]


def test_the_key_stays_while_a_conversation_grows() -> None:
    question = {"role": "user", "content": "And now?"}
    keys = {sent("gpt-5.5", [*TURNS * times, question])["prompt_cache_key"] for times in (1, 2)}
    assert len(keys) == 1


@pytest.mark.parametrize(("model", "kind", "name"), [("gpt-6.1-sol", "text", "messages"),
                                                      ("gpt-6-pro", "input_text", "input")])  # fmt: skip
def test_models_with_priced_writes_get_a_breakpoint(model: str, kind: str, name: str) -> None:
    payload = sent(model, "Hi", system=LONG)
    assert payload[name][0]["content"] == [{"type": kind, "text": LONG, "prompt_cache_breakpoint": EXPLICIT}]
    assert payload[name][1]["content"] == "Hi"
    # A single call may be followed by the next turn of its conversation.
    assert "prompt_cache_options" not in payload


def test_a_batch_writes_the_shared_prefix_and_nothing_else() -> None:
    shared = PrefixMark(prompt_cache, 1, of_batch=True, digest=b"\x01" * 16)
    payload = sent("gpt-6.1-sol", "Hi", shared, system=LONG)
    assert (payload["prompt_cache_key"], payload["prompt_cache_options"]) == ("01" * 16, EXPLICIT)
    alone = sent("gpt-6.1-sol", "Hi", PrefixMark(prompt_cache, 0, of_batch=True), system=LONG)
    assert alone["prompt_cache_options"] == EXPLICIT
    assert "prompt_cache_breakpoint" not in str(alone)
    assert "prompt_cache_key" not in alone


def test_answers_and_tools_take_no_breakpoint() -> None:
    payload = sent("gpt-6.1-sol", [*TURNS, {"role": "user", "content": "And?"}], tools=[TOOL])
    marked = [item for item in payload["input"] if "prompt_cache_breakpoint" in str(item)]
    assert [item["role"] for item in marked] == ["user"]
    assert "prompt_cache_breakpoint" not in str(payload["tools"])


def test_options_of_the_users_own_are_left_alone_and_other_models_get_nothing() -> None:
    extra = {"prompt_cache_options": {"mode": "implicit"}}
    payload = sent("gpt-6.1-sol", "Hi", system=LONG, extra_body=extra)
    assert payload == encoded("gpt-6.1-sol", "Hi", system=LONG, extra_body=extra).payload
    # OpenAI does not have this one.
    assert encoded("openai/qwen-9", "Hi", system=LONG).prefix is None
