"""Chat completions, beside their golden exchanges."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from llm_provider.simulator import Simulator

    from ..conftest import Post


def test_an_answer_has_an_identifier_and_the_snapshot_of_its_model(simulator: Simulator, chat: Post) -> None:
    simulator.configure(snapshot_suffix="-2026-10-21")
    answer = chat("openai", "hello")
    assert answer.headers["x-request-id"].startswith("req_")
    assert answer.json["model"] == "gpt-6.1-sol-2026-10-21"
