"""``countTokens`` through the google-genai SDK, and with a whole request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from google import genai
from google.genai import types

if TYPE_CHECKING:
    from llm_provider.simulator import Simulator

    from ..conftest import Post

PATH = "/v1beta/models/gemini-3.8-flash:countTokens"
CONTENTS = [{"role": "user", "parts": [{"text": "What is 2+2?"}]}]


def test_the_sdk_counts_contents(simulator: Simulator) -> None:
    options = types.HttpOptions(base_url=simulator.url("gemini"))
    client = genai.Client(api_key="key", http_options=options)
    count = client.models.count_tokens(model="gemini-3.8-flash", contents="What is 2+2?").total_tokens
    answer = client.models.generate_content(model="gemini-3.8-flash", contents="What is 2+2?")
    client.close()
    assert answer.usage_metadata is not None
    assert count == answer.usage_metadata.prompt_token_count
    assert [entry.requests for entry in simulator.ledger().models] == [1]


def test_a_whole_request(simulator: Simulator, post: Post) -> None:
    instruction = {"parts": [{"text": "Be brief and kind."}]}
    whole = {"model": "models/gemini-3.8-flash", "contents": CONTENTS, "systemInstruction": instruction}
    alone = post(PATH, {"contents": CONTENTS})
    assert post(PATH, {"generateContentRequest": whole}).body != alone.body
    assert post(PATH, {"generateContentRequest": {**whole, "model": "models/other"}}).status == 400
    assert post(PATH, {"generateContentRequest": whole, "contents": CONTENTS}).status == 400
