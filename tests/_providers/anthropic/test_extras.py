"""Citations and server tools in the shapes of Anthropic's SDK."""

from __future__ import annotations

from typing import Any

import pytest
from anthropic.types import TextBlock
from pydantic import TypeAdapter

from llm_provider import Citation, ServerToolCall
from llm_provider._providers.anthropic import extras

LOCATIONS: list[tuple[dict[str, Any], Citation]] = [
    (
        {"type": "char_location", "cited_text": "so", "document_index": 1, "document_title": "T",
         "start_char_index": 3, "end_char_index": 5, "file_id": "f"},
        Citation(start=4, end=10, quote="so", title="T", document_index=1, file_id="f"),
    ),
    (
        {"type": "page_location", "cited_text": "so", "document_index": 0, "start_page_number": 2,
         "end_page_number": 3},
        Citation(start=4, end=10, quote="so", document_index=0),
    ),
    (
        {"type": "search_result_location", "cited_text": "so", "search_result_index": 0, "source": "https://a",
         "title": "T", "start_block_index": 0, "end_block_index": 1},
        Citation(start=4, end=10, quote="so", title="T", url="https://a"),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("location", "expected"), LOCATIONS)
def test_a_citation_supports_its_block(location: dict[str, Any], expected: Citation) -> None:
    block = TypeAdapter(TextBlock).validate_python(
        {"type": "text", "text": "so it ", "citations": [location]}
    )
    blocks = [
        {"type": "thinking", "thinking": "…", "signature": "s"},
        {"type": "text", "text": "Yes "},
        block.model_dump(mode="json"),
        {"type": "text", "text": "is."},
    ]
    (citation,) = extras.citations({"content": blocks})
    assert citation == expected
    assert citation.raw["type"] == location["type"]


def test_a_call_has_its_result() -> None:
    blocks = [
        {"type": "server_tool_use", "id": "s1", "name": "code_execution", "input": {"code": "1"}},
        {"type": "code_execution_tool_result", "tool_use_id": "s1", "content": {"stdout": "1"}},
        {"type": "mcp_tool_use", "id": "m1", "name": "look", "server_name": "s", "input": {}},
        {"type": "tool_use", "id": "t1", "name": "mine", "input": {}},
    ]
    assert extras.server_tool_calls({"content": blocks}) == [
        ServerToolCall(name="code_execution", arguments={"code": "1"}, result={"stdout": "1"}, id="s1"),
        ServerToolCall(name="look", arguments={}, id="m1"),
    ]


def test_claude_makes_no_media() -> None:
    assert extras.images({}) == []
    assert extras.audio({}) is None
