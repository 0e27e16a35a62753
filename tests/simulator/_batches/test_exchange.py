"""Replies of batch and file endpoints."""

from __future__ import annotations

from typing import Any

import pytest

from llm_provider.simulator._batches.exchange import Call, refuse


@pytest.mark.parametrize("provider", ["openai", "anthropic", "gemini"])
def test_an_error_has_the_form_of_its_provider(provider: str) -> None:
    call = Call(provider=provider, method="GET", path="/", query={}, headers={}, key="", body=b"", root="")
    reply = refuse(call, 404, "there is none")
    body: Any = reply.body
    assert (reply.status, body["error"]["message"]) == (404, "there is none")
    assert ("type" in body) == (provider == "anthropic")
