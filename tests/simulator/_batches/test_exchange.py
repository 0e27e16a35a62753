"""Replies of batch and file endpoints."""

from __future__ import annotations

from typing import Any

import pytest

from llm_provider.simulator._batches.exchange import Call, refuse


@pytest.mark.parametrize(
    ("provider", "path"),
    [("openai", ("error", "message")), ("anthropic", ("error", "message")), ("gemini", ("error", "message"))],
)
def test_an_error_has_the_form_of_its_provider(provider: str, path: tuple[str, str]) -> None:
    call = Call(
        provider=provider, method="GET", path="/v1/batches/x", query={}, headers={}, key="", body=b"", root=""
    )
    reply = refuse(call, 404, "there is none")
    assert reply.status == 404
    body: Any = reply.body
    assert body[path[0]][path[1]] == "there is none"
    assert ("type" in body) == (provider == "anthropic")
