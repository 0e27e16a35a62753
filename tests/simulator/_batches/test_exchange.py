"""Forms and errors of batch and file endpoints."""

import io
from typing import Any

import httpx2
import pytest

from llm_provider.simulator._batches.exchange import Call, Field, parse_fields


@pytest.mark.parametrize("provider", ["openai", "anthropic", "gemini"])
def test_an_error_has_the_form_of_its_provider(provider: str) -> None:
    call = Call(provider=provider, method="GET", path="/", query={}, headers={}, key="", body=b"", root="")
    reply = call.refuse(404, "there is none")
    body: Any = reply.body
    assert (reply.status, body["error"]["message"]) == (404, "there is none")
    assert ("type" in body) == (provider == "anthropic")


def test_a_form_of_an_sdk_is_read() -> None:
    content = b"--x\r\n\r\nlines \r\n--"
    files = {"file": ("a b.pdf", io.BytesIO(content), "application/pdf")}
    request = httpx2.Request("POST", "http://localhost", data={"purpose": "user_data"}, files=files)
    fields = parse_fields(request.headers["content-type"].encode(), request.read())
    assert fields == {"purpose": Field(b"user_data"), "file": Field(content, "a b.pdf", "application/pdf")}


@pytest.mark.parametrize(("after", "page"), [(None, "a"), ("a", "b"), ("c", ""), ("unknown", "")])
def test_the_page_behind_a_name(after: str | None, page: str) -> None:
    query = {"limit": "1", **({"after": after} if after else {})}
    call = Call(provider="openai", method="GET", path="/", query=query, headers={}, key="", body=b"", root="")
    assert "abc"[call.select_page_after("after", "abc")] == page
