"""The parts of conversations, which need none of the packages."""

import pickle

import pytest

from llm_provider import BudgetExceededError, Client, RequestError
from llm_provider._core.money.pricing import default_prices_path
from llm_provider._core.types.usage import TokenLogprob
from llm_provider.integrations.conversation import (
    Variant,
    assistant_message,
    extract_state,
    media_part,
    parameter_names,
    token_logprobs,
    tool_call,
)
from llm_provider.simulator import Simulator


def test_an_assistant_message_comes_back_whole(client: Client) -> None:
    tool = {"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}
    for model in ("gpt-6.1-sol", "claude-sonnet-5-5", "gemini-3.8-flash", "together_ai/zai-org/GLM-5.3"):
        answer = client.call(model, "use the tool add({})", tools=[tool], reasoning_effort="high")
        calls = [tool_call(call.id, call.name, call.arguments) for call in answer.tool_calls]
        message = assistant_message(answer.text, calls, extract_state(answer.message))
        assert message == answer.message


def test_a_message_without_anything_has_an_empty_text() -> None:
    assert assistant_message(None, [], None) == {"role": "assistant", "content": ""}


def test_media() -> None:
    video, sound, pdf = (f"data:{kind};base64,AA" for kind in ("video/mp4", "audio/mpeg", "application/pdf"))
    assert media_part("video", video) == {"type": "video_url", "video_url": {"url": video}}
    assert media_part("audio", sound)["input_audio"] == {"data": "AA", "format": "mp3"}
    assert media_part("document", pdf, filename="a.pdf")["file"] == {"file_data": pdf, "filename": "a.pdf"}


def test_log_probabilities() -> None:
    top = (TokenLogprob(token="a", logprob=-0.1), TokenLogprob(token="b", logprob=-3.0))
    (entry,) = token_logprobs([TokenLogprob(token="a", logprob=-0.1, top=top)])
    assert (entry["token"], entry["logprob"]) == ("a", -0.1)
    assert entry["top_logprobs"] == [
        {"token": "a", "logprob": -0.1, "bytes": None},
        {"token": "b", "logprob": -3.0, "bytes": None},
    ]
    assert token_logprobs(None) == []


def test_a_variant_and_its_own_variants_share_a_budget(simulator: Simulator) -> None:
    simulator.configure(prices=default_prices_path())
    variant = Variant({"budget": 0.03, "max_tokens": 40, "seed": None})
    other = Variant({"cache": "off"}, variant)
    assert other.defaults == {"budget": 0.03, "max_tokens": 40, "cache": "off"}
    assert variant.client.call("gpt-4.1", "What is 1+1?", max_tokens=1000).text == "2"
    with pytest.raises(BudgetExceededError) as caught:
        for number in range(100):
            other.client.call("gpt-4.1", f"What is 1+{number}?" + " really" * 1000)
    assert float(caught.value.spent) == pytest.approx(float(simulator.ledger().billed or 0))
    assert pickle.loads(pickle.dumps(other)).defaults == other.defaults


def test_a_wrong_default_is_an_error() -> None:
    with pytest.raises(RequestError, match="temperature"):
        _ = Variant({"temperature": 9}).client
    assert {"temperature", "budget", "cache"} <= parameter_names()
