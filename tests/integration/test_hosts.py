"""Two servers of llama.cpp as one `Host`: equal answers under one key, and one of them may die."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from llm_provider import Client, Host, Parameters

if TYPE_CHECKING:
    from conftest import LlamaServer

pytestmark = pytest.mark.integration

ENDS: Parameters = {"max_tokens": 60, "temperature": 0, "stop": "st"}
"""Ends every answer at its first word with "st"."""


def test_two_servers_answer_as_one_and_one_may_be_killed(
    two_llamas: tuple[LlamaServer, LlamaServer], tmp_path: Path
) -> None:
    one, two = two_llamas
    prompts = [f"Tell me something about {number}." for number in range(60)]
    alone = Host("lab", one.base_url, "llama.cpp")
    with Client(cache="off", hosts=[alone]) as client:
        expected = client.call_many("lab/tiny", prompts[:30], **ENDS).texts
    both = Host("lab", [one.base_url, two.base_url], "llama.cpp")
    texts = {}
    with Client(cache_dir=tmp_path / "cache", hosts=[both]) as client:
        for number, answer in client.iter_many("lab/tiny", prompts, progress=False, **ENDS):
            texts[number] = answer.text
            if len(texts) == 30:
                two.process.kill()
    assert sorted(texts) == list(range(60))
    assert [texts[number] for number in range(30)] == expected
    # The key has no address: the server that is left finds the answers of both, and sends nothing.
    with Client(cache_dir=tmp_path / "cache", cache="only", hosts=[alone]) as client:
        stored = client.call_many("lab/tiny", prompts, **ENDS).texts
    assert stored == [texts[number] for number in range(60)]
    used = [(tmp_path / name).read_text().count("POST /v1/chat/completions") for name in "ab"]
    assert used[0] > 30  # 30 of them alone
    assert used[1] >= 5
