"""Every fault, as it arrives at a plain client and at the real SDKs."""

from __future__ import annotations

import asyncio
import http.client
from typing import TYPE_CHECKING, Any

import anthropic
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_provider.simulator import Fault
from llm_provider.simulator._behaviour.faults import FINISHES, RETRY_AFTER_STYLES, FaultQueue
from support import wait_until

if TYPE_CHECKING:
    from llm_provider.simulator import Simulator

    from ..conftest import Post

HELLO: dict[str, Any] = {"messages": [{"role": "user", "content": "one two three"}]}
REQUESTS = {
    "openai": ("/openai/v1/chat/completions", {"model": "gpt-6.1-sol", **HELLO}),
    "groq": ("/groq/v1/chat/completions", {"model": "openai/gpt-oss-120b", **HELLO}),
    "responses": ("/openai/v1/responses", {"model": "gpt-6.1-sol", "input": "one two three"}),
    "anthropic": ("/anthropic/v1/messages", {"model": "claude-sonnet-5-5", "max_tokens": 100, **HELLO}),
    "gemini": (
        "/gemini/v1/models/gemini-4-argon:generateContent",
        {"contents": [{"parts": [{"text": "one two three"}]}]},
    ),
}
STATUSES = (400, 401, 402, 403, 404, 408, 409, 413, 422, 429, 500, 502, 503, 504, 529)


def streaming(name: str) -> tuple[str, dict[str, Any]]:
    path, body = REQUESTS[name]
    if name == "gemini":
        return path.replace(":generateContent", ":streamGenerateContent?alt=sse"), body
    return path, {**body, "stream": True}


@pytest.mark.parametrize("name", REQUESTS)
def test_every_status_in_the_providers_own_form(simulator: Simulator, post: Post, name: str) -> None:
    kinds = set()
    for status in STATUSES:
        simulator.inject(Fault(status=status, message=f"made up {status}"))
        answer = post(*REQUESTS[name])
        error = answer.json["error"]
        assert (answer.status, error["message"]) == (status, f"made up {status}")
        kinds.add(error["status"] if name == "gemini" else error["type"])
        if name == "gemini":
            assert error["code"] == status
    assert len(kinds) >= 5
    assert post(*REQUESTS[name]).status == 200
    assert simulator.ledger().faults == len(STATUSES)


@pytest.mark.parametrize(
    ("style", "header"), [("seconds", "retry-after"), ("date", "retry-after"), ("ms", "retry-after-ms")]
)
def test_retry_after_is_sent_as_it_is(simulator: Simulator, post: Post, style: str, header: str) -> None:
    for value in ("3", "nan", "-1", "1e400", "Fri, 31 Dec 9999 23:59:59 GMT", "\u0661\u0662"):
        simulator.inject(Fault(status=429, retry_after=value, retry_after_style=style))
        assert post(*REQUESTS["openai"]).headers[header].encode("latin-1") == value.encode()


def test_retry_info_is_in_geminis_body(simulator: Simulator, post: Post) -> None:
    simulator.inject(Fault(status=429, retry_after="27.39s", retry_after_style="retry_info"))
    answer = post(*REQUESTS["gemini"])
    details = {one["@type"].rpartition(".")[2]: one for one in answer.json["error"]["details"]}
    assert details["RetryInfo"]["retryDelay"] == "27.39s"
    assert "PerMinute" in details["QuotaFailure"]["violations"][0]["quotaId"]
    assert "retry-after" not in answer.headers


def test_quota(simulator: Simulator, post: Post) -> None:
    simulator.inject(Fault(quota=True), times=None)
    assert post(*REQUESTS["openai"]).json["error"]["code"] == "insufficient_quota"
    assert post(*REQUESTS["openai"]).status == 429
    assert post(*REQUESTS["anthropic"]).json["error"]["type"] == "billing_error"
    assert "PerDay" in post(*REQUESTS["gemini"]).body.decode()


def test_a_fault_of_one_key(simulator: Simulator, chat: Post) -> None:
    simulator.inject(Fault(status=401), key="bad", times=None)
    statuses = [chat("openai", "hi", {"authorization": f"Bearer {key}"}).status for key in ("good", "bad")]
    assert statuses == [200, 401]


@pytest.mark.parametrize("name", REQUESTS)
def test_context_length(simulator: Simulator, post: Post, name: str) -> None:
    simulator.inject(Fault(context_length=True))
    answer = post(*REQUESTS[name])
    assert answer.status == 400
    assert "maximum" in answer.json["error"]["message"]


@pytest.mark.parametrize(
    "body", [b"", b"null", b"{}", b"[]", b"\xff\xfe", b"<html>no</html>", b'{"error":{}}']
)
def test_raw_bodies(simulator: Simulator, post: Post, body: bytes) -> None:
    simulator.inject(Fault(body=body, content_type="text/html", status=200))
    answer = post(*REQUESTS["anthropic"])
    assert (answer.status, answer.body, answer.headers["content-type"]) == (200, body, "text/html")


def test_redirect(simulator: Simulator, post: Post) -> None:
    simulator.inject(Fault(redirect="http://127.0.0.1:1/elsewhere", status=308))
    answer = post(*REQUESTS["openai"])
    assert (answer.status, answer.headers["location"]) == (308, "http://127.0.0.1:1/elsewhere")


@pytest.mark.parametrize("name", REQUESTS)
def test_a_cut_stream_ends_cleanly_without_its_last_event(
    simulator: Simulator, post: Post, name: str
) -> None:
    whole = post(*streaming(name)).events
    simulator.inject(Fault(cut_after=2))
    cut = post(*streaming(name)).events
    assert 2 <= len(cut) < len(whole)
    tokens = [entry.output_tokens for entry in simulator.ledger().models]
    assert tokens == [5 + 3]


@pytest.mark.parametrize("name", REQUESTS)
def test_a_cut_comes_even_if_the_answer_has_fewer_chunks(simulator: Simulator, post: Post, name: str) -> None:
    whole = post(*streaming(name)).events
    simulator.inject(Fault(cut_after=1000))
    cut = post(*streaming(name)).events
    assert len(cut) < len(whole) or name == "gemini"


@pytest.mark.parametrize("name", REQUESTS)
def test_an_aborted_stream_breaks_the_connection(simulator: Simulator, post: Post, name: str) -> None:
    simulator.inject(Fault(abort_after=1), times=2)
    with pytest.raises(http.client.IncompleteRead) as caught:
        post(*streaming(name))
    assert b"echo:" in caught.value.partial
    with pytest.raises(http.client.IncompleteRead):
        post(*REQUESTS[name])
    assert post(*streaming(name)).status == 200


@pytest.mark.parametrize("name", REQUESTS)
def test_an_error_inside_a_stream(simulator: Simulator, post: Post, name: str) -> None:
    simulator.inject(Fault(error_after=1, status=529, message="made up"))
    answer = post(*streaming(name))
    assert answer.status == 200
    last = answer.events[-1]
    assert (last.get("error") or last)["message"] == "made up"


def test_an_empty_stream(simulator: Simulator, post: Post) -> None:
    simulator.inject(Fault(empty_stream=True))
    answer = post(*streaming("openai"))
    assert (answer.status, answer.body) == (200, b"")


def test_hang_and_stall_last_until_the_client_leaves(simulator: Simulator) -> None:
    async def main() -> None:
        url = simulator.url("openai")
        async with openai.AsyncOpenAI(base_url=url, api_key="k", max_retries=0) as client:
            simulator.inject(Fault(hang=True))
            hanging = asyncio.create_task(client.chat.completions.create(**REQUESTS["openai"][1]))
            assert await asyncio.to_thread(wait_until, lambda: simulator.ledger().in_flight == 1)
            assert not (await asyncio.wait([hanging], timeout=0.2))[0]
            hanging.cancel()
            await asyncio.wait([hanging])
            simulator.inject(Fault(stall_after=1))
            chunks = await client.chat.completions.create(**REQUESTS["openai"][1], stream=True)
            seen = [(await anext(chunks)).choices[0].delta.content for _ in range(2)]
            assert seen == ["", "echo:"]
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(chunks), 0.2)

    asyncio.run(main())
    assert wait_until(lambda: simulator.ledger().disconnects == 2)


def test_a_stall_with_a_delay_goes_on(simulator: Simulator, post: Post) -> None:
    simulator.inject(Fault(stall_after=1, delay=0.05))
    assert post(*streaming("openai")).events[-1] == "[DONE]"


@pytest.mark.parametrize("name", REQUESTS)
@pytest.mark.parametrize("finish", FINISHES)
def test_unusual_ends(simulator: Simulator, post: Post, name: str, finish: str) -> None:
    simulator.inject(Fault(finish=finish), times=2)
    whole, stream = post(*REQUESTS[name]), post(*streaming(name))
    assert (whole.status, stream.status) == (200, 200)
    if name in {"openai", "groq"}:
        choices = whole.json["choices"]
        found = "no_choices" if not choices else choices[0]["finish_reason"]
        message = choices[0]["message"] if choices else {}
        expected = {"refusal": "stop", "empty": "stop", "null_content": "stop"}.get(finish, finish)
        assert found == expected
        assert message.get("content") == {"empty": "", "content_filter": "", "length": "echo: one"}.get(
            finish
        )
        assert stream.events[-1] == "[DONE]"
    elif name == "anthropic":
        ends = {
            "length": "max_tokens",
            "tool_calls": "tool_use",
            "refusal": "refusal",
            "content_filter": "refusal",
        }
        assert whole.json["stop_reason"] == ends.get(finish, "end_turn")
        assert stream.events[-2]["delta"]["stop_reason"] == ends.get(finish, "end_turn")
    elif name == "gemini":
        assert ("candidates" in whole.json) == (finish != "no_choices")


@pytest.mark.parametrize("name", REQUESTS)
def test_an_ordered_text_is_the_answer(simulator: Simulator, post: Post, name: str) -> None:
    simulator.inject(Fault(text="Grüezi"), times=2)
    for request in (REQUESTS[name], streaming(name)):
        assert "Grüezi" in post(*request).body.decode()
    assert "Grüezi" not in post(*REQUESTS[name]).body.decode()


def test_orders_go_by_provider_and_text(simulator: Simulator, post: Post) -> None:
    simulator.inject(Fault(status=503), provider="anthropic", times=None)
    simulator.inject(Fault(status=500), match="two", times=1)
    assert post(*REQUESTS["anthropic"]).status == 503
    assert post(*REQUESTS["openai"]).status == 500
    assert post(*REQUESTS["openai"]).status == 200
    assert post(*REQUESTS["anthropic"]).status == 503
    simulator.clear()
    assert post(*REQUESTS["anthropic"]).status == 200


def test_the_sdk_sees_overload(simulator: Simulator) -> None:
    async def main() -> None:
        url = simulator.url("anthropic")
        async with anthropic.AsyncAnthropic(base_url=url, api_key="k", max_retries=0) as client:
            simulator.inject(Fault(status=529))
            with pytest.raises(anthropic.InternalServerError) as caught:
                await client.messages.create(**REQUESTS["anthropic"][1])
            assert caught.value.status_code == 529
            simulator.inject(Fault(error_after=1, status=529))
            async with client.messages.stream(**REQUESTS["anthropic"][1]) as stream:
                with pytest.raises(anthropic.APIStatusError):
                    await stream.until_done()

    asyncio.run(main())


@pytest.mark.parametrize(
    "fields",
    [{"finish": "late"}, {"retry_after_style": "weeks"}, {"status": 99}, {"status": 100}, {"unknown": 1}],
)
def test_mistakes_in_an_order(fields: dict[str, Any]) -> None:
    with pytest.raises((ValueError, TypeError)):
        Fault(**fields)


@given(
    st.builds(
        Fault,
        status=st.none() | st.integers(200, 599),
        message=st.none() | st.text(),
        retry_after=st.none() | st.text(),
        retry_after_style=st.sampled_from(RETRY_AFTER_STYLES),
        quota=st.booleans(),
        body=st.none() | st.binary() | st.text(),
        delay=st.floats(0, 10),
        cut_after=st.none() | st.integers(0, 10),
        finish=st.none() | st.sampled_from(FINISHES),
    )
)
def test_a_fault_survives_the_control_channel(fault: Fault) -> None:
    assert Fault.from_json(fault.to_json()) == fault


@given(st.lists(st.sampled_from(["openai", "groq"]), max_size=20), st.integers(0, 5))
def test_exactly_so_many_requests_meet_a_fault(providers: list[str], times: int) -> None:
    queue, fault = FaultQueue(), Fault(status=500)
    queue.add(fault, provider="groq", times=times)
    met = [queue.take(provider, "text", "sk-any") for provider in providers]
    assert met.count(fault) == min(times, providers.count("groq"))
    assert all(one is None for one, provider in zip(met, providers, strict=True) if provider == "openai")


def test_a_share_of_the_requests_meets_a_fault() -> None:
    queue, fault = FaultQueue(), Fault(status=529)
    queue.add(fault, times=None, share=0.1)
    met = [queue.take("openai", "text", "sk-any") for _ in range(2000)]
    assert 140 < met.count(fault) < 260
    assert met.count(None) == 2000 - met.count(fault)
