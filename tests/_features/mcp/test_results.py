"""What a model reads of the results and failures of MCP servers."""

import pytest

from llm_provider import Client
from mcp_support import raw, results, run


@pytest.mark.parametrize(
    ("mode", "told"),
    [
        ("junk", "hello"),
        ("strict", "hello"),
        ("half", "\ufffd"),
        ("error", "Error: ToolError: quota of ..."),
        ("secret", "Error: ToolError: wrong key ..."),
    ],
)
def test_what_the_model_reads(client: Client, mode: str, told: str) -> None:
    server = raw(mode, env={"API_KEY": "key-of-the-user"})
    for _ in range(2):
        assert results(run(client, server, cache="off")) == [told]


def test_a_result_that_is_none_is_told(client: Client) -> None:
    (told,) = results(run(client, raw("bad_result")))
    assert told.startswith("Error: ToolError: ")
