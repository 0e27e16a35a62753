"""The estimate knows what the prompt cache saves."""

import pytest

from llm_provider import Client

DOCUMENT = "The quick brown fox jumps over the lazy dog again. " * 400


@pytest.mark.parametrize(
    ("model", "write", "read"),
    [("claude-sonnet-5-5", 1.25, 0.05), ("gpt-6.1-sol", 1.25, 0.05), ("gpt-5.5", 1, 0.1)],
)
def test_the_saving_is_known_beforehand(model: str, write: float, read: float) -> None:
    questions = [f"What is {number}+{number}?" for number in range(20)]
    with Client() as client:
        plain = client.estimate(model, questions, system=DOCUMENT, max_tokens=1)
        estimated = client.estimate(model, questions, system=DOCUMENT, max_tokens=1, prompt_caching=True)
        alone = client.estimate(model, questions[:1], system=DOCUMENT, max_tokens=1, prompt_caching=True)
        off = client.estimate(model, questions[:1], system=DOCUMENT, max_tokens=1)
    assert plain.cost is not None
    assert estimated.cost is not None
    assert estimated.input_tokens == plain.input_tokens
    assert 0.9 < estimated.cached_input_tokens.likely / plain.input_tokens.likely * 20 / 19 < 1
    assert estimated.cost.likely / plain.cost.likely == pytest.approx((write + 19 * read) / 20, rel=0.15)
    # A cache that keeps nothing is the worst case.
    assert estimated.cost.high == plain.cost.high
    assert "from the prompt cache" in str(estimated)
    assert alone.cost == off.cost
    assert "no input is cached" in str(alone)


def test_different_beginnings_save_nothing() -> None:
    inputs = [[{"role": "user", "content": f"{number} {DOCUMENT}"}, {"role": "assistant", "content": "Yes."},
               {"role": "user", "content": "And?"}] for number in range(3)]  # fmt: skip
    with Client() as client:
        estimated = client.estimate("claude-sonnet-5-5", inputs, prompt_caching=True)
        assert estimated.cost == client.estimate("claude-sonnet-5-5", inputs).cost
    assert estimated.cached_input_tokens.high == 0
