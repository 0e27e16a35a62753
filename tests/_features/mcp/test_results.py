"""What a model reads of the results and failures of MCP servers."""

import pytest

from llm_provider import Client
from mcp_support import raw, results, run
from raw_mcp_server import PNG


@pytest.mark.parametrize(
    ("mode", "told"),
    [
        ("junk", "hello"),
        ("chatty", "hello"),
        ("string_id", "hello"),
        ("stuck_cursor", "hello"),
        ("untyped", "hello"),
        ("no_content", '{"rows":3}'),
        ("null_content", '{"rows":3}'),
        ("empty", ""),
        ("same_twice", '{ "rows":  3 }'),
        ("summary", '3 rows\n{"rows":3}'),
        ("failed", "Error: ToolError: the tool failed, and gave no reason"),
        ("failed_with_data", 'Error: ToolError: {"reason":"late"}'),
        ("failed_with_both", 'Error: ToolError: refused\n{"answer":42}'),
        ("dangling_output", '{"rows":3}'),
        ("other_output", '{"rows":"three"}'),
        ("missing_output", "3 rows"),
        ("strict", "hello"),
        ("half", "\ufffd"),
        ("latin", "Z\ufffdrich"),
        ("batch", "Zürich"),
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


@pytest.mark.parametrize("mode", ["data_uri", "lines", "unpadded", "blob"])
def test_every_form_of_an_image_is_shown(client: Client, mode: str) -> None:
    ((part,),) = results(run(client, raw(mode)))
    assert part == {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}


def test_nothing_of_a_server_is_printed(client: Client, capfd: pytest.CaptureFixture[str]) -> None:
    for mode in ("junk", "chatty", "bad_result"):
        run(client, raw(mode))
    assert capfd.readouterr() == ("", "")
