"""`llm-provider check` on the simulator: every deviation is named, and none where there is none."""

import base64
import json
import os
import re
from collections.abc import Sequence
from urllib.parse import quote

import pytest
from aiohttp import web

from llm_provider import RequestError
from llm_provider._core.requests.api_keys import APIKey
from llm_provider._core.requests.routing import ROUTES, find_route
from llm_provider._features.check.account import BAD, Row, write_markdown
from llm_provider._features.check.check import Check, choose_models
from llm_provider._features.check.replies import UNKNOWN, WRONG
from llm_provider._features.check.traffic import RecordingProxy, Scrubber, keep_headers
from llm_provider.simulator import Fault, Simulator
from llm_provider.simulator._behaviour.deviations import DEVIATIONS
from llm_provider.simulator._behaviour.score_shapes import SCORE_CHANGES

PROVIDERS = ("openai", "anthropic", "gemini", "groq")
KEY = "sk-canary-0123456789abcdef"
OWN_KEY = "0123456789abcdef01"

NAMED = {
    "no_finish_reason": ("groq", "fields and events", "finish_reason: null"),
    "empty_finish_reason": ("openai", "fields and events", "unknown word ''"),
    "reasoning_details": ("groq", "new fields", "message.reasoning_details"),
    "extra_content": ("groq", "new fields", "extra_content"),
    "calls_from_one": ("groq", "fields and events", "the first call of a stream has the index 1"),
    "custom_call": ("openai", "fields and events", "a custom call answers"),
    "function_call": ("groq", "fields and events", "the form before tool_calls"),
    "no_message": ("groq", "call", "content_filter"),
    "own_cost": ("groq", "cost", "$0.0161 by reply"),
    "calls_at_start": ("anthropic", "fields and events", "message_start has content"),
    "error_events": ("gemini", "fields and events", "text/event-stream with status 404"),
    "unnamed_tokens": ("openai", "fields and events", "total_tokens differs"),
    "phantom_call": ("groq", "fields and events", "function_call"),
    "no_arguments": ("groq", "fields and events", "arguments: missing"),
    "changed_ids": ("openai", "fields and events", "another call_id at its end"),
    "goes_on_after_stop": ("gemini", "fields and events", "goes on after its finish reason"),
    "blank_done": ("groq", "fields and events", "is not written 'data: [DONE]'"),
    "status_400": ("anthropic", "wrong model", "HTTP 400"),
    "detail_error": ("groq", "wrong model, stream", "HTTP 200"),
    "other_request_id": ("openai", "served by", "no request id is read; headers with ids: ['x-trace-id']"),
    "other_limit_headers": ("anthropic", "limits", "headers tell none"),
    "fallback_model": ("openai", "served by", "some-smaller-model answered"),
    "blank_text": ("anthropic", "fields and events", "a text that is blank"),
    "audio_beside": ("groq", "fields and events", "prompt_tokens_details has more than prompt_tokens"),
    "thinking_parts": ("groq", "fields and events", "message.content: [{'type': 'thinking'"),
    "unexpected_call": ("gemini", "fields and events", "an unusual word ends the answer"),
    "false_limits": ("anthropic", "limits", "refused"),
    "byte_vectors": ("openai", "embedding", "an entry that is not finite"),
}
"""Deviation → a provider that shows it, the row that names it, and a part of what the row says."""

CHANGED: dict[str, tuple[tuple[str, ...], ...]] = {
    "groq/openai/gpt-oss-120b": (
        ("chat", r'"(prompt|total)_tokens":\d+', r'"\1_tokens":0', "usage", "call: 0 + 1 tokens"),
        ("chat", r"gpt-oss-120b", "gpt-oss-120b-mini", "served by", "gpt-oss-120b-mini answered"),
        ("chat", r'"arguments":"\{', r'"arguments":"{{', "tool call", "arguments: '{{"),
        ("chat.*stream", r'"id":"call_\w+', '"id":"', WRONG, "a call has no id"),
        ("chat", '"finish_reason":"tool_calls"', '"finish_reason":"stop"', WRONG, "calls ends with stop"),
        ("chat", r"data: \[DONE\]\n", "", WRONG, "the stream ends without [DONE]"),
        ("chat.*stream", '"content":"', '"content":"\u2028', "call", ""),
        ("chat", '"content":"42"', '"content":"4\\\\u001b[2J\\\\n2"', "call", r"4\x1b[2J 2"),
        ("chat", r"^404\n.*", '404\n{"error":"no"}', WRONG, "status 404 has no error.message"),
        ("chat.*hello", '"usage":', '"usage":"?","used":', WRONG, "cannot be compared"),
        ("GET .*/batches/", "^200", "404", "batch", "batch_0000"),
        ("Eiffel", r'"content":"\{', '"content":"Here: {', "structured answer", "not only JSON"),
        ("Say [1-9]", '"index":0', '"index":1', WRONG, "another index than 0"),
        ("Say 2", '"content":"', r'"content":"<think>hm</think>', WRONG, "thinking stands within the text"),
        ("tool", "120b-mini", "20b", "served by", "gpt-oss-20b answered"),
    ),
    "gpt-6.1-sol": (
        ("embed", r'(ing":)(["[][^]"]+)(.*ing":)["[][^]"]+', r"\1\2\3\2", "embedding", "lengths [1.0],"),
        ("embed", "-3-small", "-4", "embedding", "by text-embedding-4"),
        ("responses", r'"usage":\{', '"usages":{', "usage", " tool call: 0 + 0 tokens"),
        ("chat.*Say [1-9]", "^200", "503", "limits", "others failed: OverloadedError"),
        ("responses", r'max_output_tokens":400', 'max_output_tokens":9', WRONG, "asked, and 9 is echoed"),
        ("responses.*stream", r"event: .*arguments\.delta\ndata: .*\n\n", "", WRONG, "has no end, or no"),
        ("responses.*stream", 'ce_number":2', 'ce_number":1', WRONG, "sequence_number does not rise"),
        ("no-such", '"type":"[^"]*"', '"type":5', WRONG, "error.type: 5 has another type"),
    ),
    "claude-haiku-5-5": (
        ("models", "^200", "403", "key", "PermissionDeniedError"),
        ("messages", r'"output_tokens":\d+', '"output_tokens":9000', "usage", "stream: 4 + 9000"),
        ("messages", 'cache_read_input_tokens":79', r"\g<0>9", "prompt cache", "read"),
        ("Count", "event: content_block_delta", "event: delta", WRONG, "a line 'event:' is not the type"),
        ("weather.*stream", '"index":0', '"index":1', WRONG, "parts of a stream have the indexes [1]"),
        ("Count", r"event: content_block_stop\n.*\n\n", "", WRONG, "a content_block has no end"),
        ("12 .* 30", r'"stop_reason":"\w+"', '"stop_reason":null', WRONG, "has no finish reason"),
        ("no-such", "not_found_error", "gone_error", WRONG, "error.error: unknown type 'gone_error'"),
        ("Who pays", r'5m_input_tokens":\d+', '5m_input_tokens":1', WRONG, "cache_creation has less than"),
    ),
    "gemini/gemini-3.8-flash": (
        (
            "Count",
            r'(?s)" Count"(.*)" to"(.*)" tw',
            r'"echo: "\1"echo: C"\2"echo: C ',
            "stream",
            "delta repeats",
        ),
        ("Which colour", '":26[05]', '":3', "usage", "image input: 3 +"),
        ("Count", '"gemini-3.8-flash"', '"gemini-4-pro"', "served by", "stream: gemini/gemini-3.8-flash was"),
        ("Count", r"STOP([\s\S]*)$", r'STOP\1data: {"modelVersion":"x"}\n\n', WRONG, "modelVersion changes"),
        ("12 .* 30", r'"finishReason":"\w+"', '"finishReason":null', WRONG, "has no finish reason"),
        ("Eiffel", '"tokenCount":7', '"tokenCount":99', WRONG, "promptTokensDetails has more than"),
        ("batches/", r'"updateTime":"[^"]*"', '"updateTime":5', WRONG, "updateTime: 5 has another type"),
        ("batch", '"state":', '"mood":5,"state":', UNKNOWN, "batch.mood"),
        ("no-such", '"status"', '"state"', WRONG, "error.status: missing"),
    ),
}
"""Model → requests, what is changed in status and body, and the row and a part of what it says."""


class ChangingServer(RecordingProxy):
    """Passes requests on to the simulator, and changes the replies."""

    changes: Sequence[tuple[str, ...]]

    async def _pass_on(self, request: web.BaseRequest) -> web.Response:
        sent, url = await request.read(), self._origin + request.raw_path
        headers = keep_headers(request.headers)
        async with self._session.request(request.method, url, headers=headers, data=sent or None) as reply:
            text = f"{reply.status}\n{await reply.text()}"
        for where, old, new, *_ in self.changes:
            if re.search(where, f"{request.method} {request.path} {sent.decode()}"):
                text = re.sub(old, new, text)
        status, _, body = text.partition("\n")
        headers = {**keep_headers(reply.headers), "x-model": OWN_KEY, "x-organization": "acme-corp"}
        return web.Response(status=int(status), body=body.encode(), headers=headers)


@pytest.fixture
def account(simulator: Simulator, fast_batches: None, monkeypatch: pytest.MonkeyPatch) -> Simulator:
    """A simulator that behaves like an account: with a key, limits, lists and windows."""
    monkeypatch.setattr("llm_provider._features.check.check._PATIENCE", 1.0)
    for provider in PROVIDERS:
        monkeypatch.setenv(f"{provider.upper()}_API_KEY", KEY)
    simulator.configure(
        prompt_cache=True, context_window=20_000, requests_per_minute=6000, only_listed_models=True,
        batch_clock=1.0, require_key=KEY,
    )  # fmt: skip
    return simulator


def run(*providers: str, budget: float = 100.0) -> tuple[list[Row], Check]:
    check = Check(lambda _: None)
    check.run(choose_models(providers, ()), budget)
    return check.rows, check


def test_an_account_as_expected_has_no_row_that_says_otherwise(account: Simulator) -> None:
    rows, check = run(*PROVIDERS)
    assert {row.provider for row in rows} == set(PROVIDERS)
    assert [row for row in rows if row.verdict not in ("ok", "skipped")] == []
    for provider in ("openai", "anthropic", "gemini"):
        verdicts = [row.verdict for row in rows if row.provider == provider]
        assert (set(verdicts), len(verdicts) >= 20) == ({"ok"}, True)
    texts = json.dumps(check.report()) + json.dumps(check.record()) + write_markdown(check.report())
    assert KEY not in texts


@pytest.mark.parametrize("name", NAMED)
@pytest.mark.sampled(5)
def test_every_deviation_is_named(account: Simulator, name: str) -> None:
    provider, row_name, text = NAMED[name]
    account.configure(deviations=name)
    if name == "false_limits":
        account.configure(requests_per_minute=600, burst=6)
    rows, _ = run(provider)
    named = [row for row in rows if row.verdict in (*BAD, "note")]
    assert any(row.name == row_name and text in row.observed for row in named), named
    # No other group of rows blames something else.
    assert len(named) <= 8


@pytest.mark.parametrize("model", CHANGED)
@pytest.mark.sampled(3)
def test_changed_replies_are_named(account: Simulator, model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    check, variables = Check(lambda _: None), ROUTES[find_route(model).provider]
    account.configure(require_key=OWN_KEY)
    monkeypatch.delenv(variables.key_variables[0])
    monkeypatch.setenv(f"{variables.key_variables[0]}S", f"{OWN_KEY},")
    server = ChangingServer(os.environ[variables.base_url_variable], set())
    server.changes = CHANGED[model]
    with server:
        monkeypatch.setenv(variables.base_url_variable, server.url)
        check.run(choose_models((), (model,)), 100.0)
    observed = {row.name: row.observed for row in check.rows if row.verdict != "ok" or row.name == "call"}
    for *_, name, text in server.changes:
        assert text in observed.get(name, ""), observed
    assert ": ' {" not in observed.get(WRONG, "")
    assert any("cancel" in request.path for request in account.requests())
    assert not re.search(rf"{OWN_KEY}|acme-corp|127\.0\.0\.1", json.dumps([check.report(), check.record()]))


def test_batches_that_cannot_be_submitted_do_not_hold_it(account: Simulator) -> None:
    account.inject(Fault(status=500), match="files", times=None)
    rows, _ = run("openai")
    assert [row.name for row in rows if row.verdict == "failed"] == ["batch"]


def test_all_deviations_of_answers_are_shown() -> None:
    # The others are those of replies to scores.
    assert set(DEVIATIONS) - set(SCORE_CHANGES) == set(NAMED)


def test_a_wrong_key_ends_a_provider_and_not_the_others(
    account: Simulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-wrong-0123456789abcdef")
    rows, _ = run("openai", "groq")
    openai = [row for row in rows if row.provider == "openai"]
    assert openai[0].verdict == "failed"
    assert "AuthenticationError" in openai[0].observed
    assert len(openai) == 3
    assert sum(row.provider == "groq" for row in rows) > 15


def test_a_budget_bounds_all_of_it(account: Simulator) -> None:
    rows, check = run("openai", budget=0.001)
    assert check.report()["cost"] <= 0.001
    assert "skipped" in {row.verdict for row in rows}


def test_what_cannot_be_checked_is_refused(simulator: Simulator) -> None:
    with pytest.raises(RequestError, match="made for one address only"):
        run("bedrock")
    with pytest.raises(RequestError, match="two models have one provider"):
        choose_models((), ("gpt-4.1", "gpt-6.1-sol"))
    assert choose_models(("groq",), ("gpt-4.1",)) == {"openai": "gpt-4.1", "groq": ""}


@pytest.mark.parametrize(
    "private",
    [
        "org-a1B2c3D4e5", "proj_a1B2c3D4e5", "user-a1B2c3D4", "ft:gpt-4.1:acme::abc123", "projects/123456789",
        "ann@example.com", "sk-proj-a1B2c3D4e5f6g7H8", "AIzaSyA1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q", "/home/ann",
        "/mnt/models/a.gguf",
    ],
)  # fmt: skip
def test_private_texts_are_replaced_always_by_the_same_word(private: str) -> None:
    scrubber = Scrubber()
    first, second = scrubber.scrub(f"a {private}, {private}").removeprefix("a ").split(", ")
    assert first == second
    assert private not in first
    assert scrubber.scrub_value({"a": [private]}) == {"a": [first]}
    assert scrubber.scrub("gpt-6.1-sol chatcmpl-0000001 call_1") == "gpt-6.1-sol chatcmpl-0000001 call_1"


@pytest.mark.parametrize("before", ["", "1", "me:", "Bearer "])
def test_a_key_is_replaced_however_a_server_writes_it(before: str) -> None:
    scrubber, key = Scrubber(), f"sk-{OWN_KEY}+/=A"
    scrubber.keys = [APIKey(key)]
    encoded = base64.b64encode(f"{before}{key} and more".encode())
    forms = (quote(key), key.replace("/", "\\/"), key.encode().hex().upper(), key[:14], encoded.decode())
    for form in (*forms, encoded.translate(bytes.maketrans(b"+/", b"-_")).decode(), "\\u0073" + key[1:]):
        text = scrubber.scrub(f'{{"echo": "{form}"}} (a row)')
        assert OWN_KEY[:9] not in text
        assert len(text) < 50, text


@pytest.mark.parametrize(
    ("model", "observed"),
    [
        ("fireworks_ai/accounts/fireworks/models/gpt-oss-120b", "this provider cannot cancel a batch"),
        ("mistral/mistral-small-2603", "cancelled"),
        ("xai/grok-4.20", "cancelled"),
    ],
)
@pytest.mark.sampled(3)
def test_batches_of_another_shape_are_no_deviation(
    simulator: Simulator, fast_batches: None, model: str, observed: str
) -> None:
    simulator.configure(batch_clock=1.0)
    check = Check(lambda _: None)
    check.run(choose_models((), (model,)), 100.0)
    rows = {row.name: row for row in check.rows}
    assert rows["batch"].verdict == rows[WRONG].verdict == rows[UNKNOWN].verdict == "ok"
    assert observed in rows["batch"].observed
