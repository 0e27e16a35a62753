"""`llm-provider check` before llama.cpp's own server, and litellm's proxy before the simulator."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from llm_provider._features.check.account import Row
from llm_provider._features.check.check import Check, choose_models

if TYPE_CHECKING:
    from conftest import LitellmProxy

pytestmark = pytest.mark.integration


def check(model: str) -> dict[str, Row]:
    run = Check(print)
    run.run(choose_models((), (model,)), 1.0)
    return {row.name: row for row in run.rows}


def test_llama_cpp_does_what_it_is_known_for(llama_address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL_BASE_URL", f"{llama_address}/v1")
    rows = check("local/tiny")
    assert all(rows[name].verdict == "ok" for name in ("key", "call", "usage", "stream", "served by"))
    # Its price is not known, it takes any name, and its replies have timings.
    assert rows["cost"].verdict == "note"
    assert "answered" in rows["wrong model"].observed
    assert "timings" in rows["new fields"].observed


def test_litellms_proxy_does_as_known(litellm_proxy: LitellmProxy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", f"{litellm_proxy.url}/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-proxy")
    rows = check("gpt-6.1-sol")
    assert all(rows[name].verdict == "ok" for name in ("key", "call", "usage", "stream", "tool result"))
