"""Remote MCP servers in one form on every route, whose tokens are in the request and nowhere else."""

import json
import logging
import pickle
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from anthropic.types.beta.message_create_params import MessageCreateParamsNonStreaming as BetaMessages

from conformance.formats import GEMINI, RESPONSES
from conformance.sdk_types import problems
from counting_server import CountingServer
from llm_provider import Client, LLMError, RequestError, UnsupportedParameterError
from support import WAYS, ask
from wire_shapes import JSON, SHAPES

TOKEN, OTHER = "tok-7f3a9c", "hdr-55e1b2"
SERVER = {
    "type": "mcp", "server_label": "docs", "server_url": "https://mcp.example/docs", "authorization": TOKEN,
    "require_approval": "never",
}  # fmt: skip
ROUTES = {
    "gpt-5.2": "responses",
    "xai/grok-4": "responses",
    "claude-opus-5-5": "anthropic",
    "gemini-3.8-flash": "gemini",
}


def sent_for(model: str, token: str) -> JSON:
    """What the request has of the server."""
    if ROUTES[model] == "responses":
        return {"tools": [{**SERVER, "authorization": token}]}
    if ROUTES[model] == "gemini":
        transport = {"url": SERVER["server_url"], "headers": {"Authorization": f"Bearer {token}"}}
        return {"tools": [{"mcpServers": [{"name": "docs", "streamableHttpTransport": transport}]}]}
    server = {"type": "url", "name": "docs", "url": SERVER["server_url"], "authorization_token": token}
    return {"tools": [{"type": "mcp_toolset", "mcp_server_name": "docs"}], "mcp_servers": [server]}


class Provider(CountingServer):
    """Answers in one format, and repeats the tools that it got, tokens included."""

    def __init__(self, model: str, status: int = 200) -> None:
        super().__init__(self.answer)
        self.model, self.status = model, status
        self.bodies: list[JSON] = []
        self.headers: list[Mapping[str, str]] = []

    def answer(self, path: str, headers: Mapping[str, str], body: Any) -> tuple[int, Mapping[str, str], Any]:
        self.bodies.append(body)
        self.headers.append(headers)
        if self.status != 200:
            return self.status, {}, {"error": {"message": f"cannot use {json.dumps(body['tools'])} {TOKEN}"}}
        shape = SHAPES[ROUTES[self.model]][0]
        if not body.get("stream") and "stream" not in path.lower():
            return 200, {}, {**shape.whole, "tools": body["tools"], "echo": TOKEN}
        events = list(shape.events)
        if ROUTES[self.model] == "responses":
            events[-1] = {**events[-1], "response": {**events[-1]["response"], "tools": body["tools"]}}
        return 200, {"content-type": "text/event-stream"}, shape.stream(events)


def holds(folder: Path, *texts: str) -> list[Path]:
    """The files in a folder that have one of some texts."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [path for path in files if any(text.encode() in path.read_bytes() for text in texts)]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("model", ROUTES)
@pytest.mark.parametrize("way", WAYS)
def test_a_token_is_in_the_request_alone(
    model: str, way: str, own_cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    ledger = own_cache.parent / "ledger.jsonl"
    with (
        Provider(model) as server,
        Client(cache_dir=own_cache, base_url=server.root, api_key="k", ledger=ledger) as client,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        answer = ask(client, way, model, tools=[SERVER])
        expected = sent_for(model, TOKEN)
        (body,) = server.bodies
        assert {name: body[name] for name in expected} == expected
        beta = server.headers[0].get("anthropic-beta")
        assert beta == ("mcp-client-2025-11-20" if model.startswith("claude") else None)
        # Whoever has another token has the same key.
        hit = ask(client, way, model, tools=[{**SERVER, "authorization": "another"}])
        assert (hit.cached, hit.text, len(server.bodies)) == (True, answer.text, 1)
        told = [repr(answer), json.dumps(answer.to_dict(), default=repr), caplog.text, repr(answer.raw)]
        pickled = pickle.dumps(answer)
    assert not [text for text in told if TOKEN in text]
    assert TOKEN.encode() not in pickled
    assert ledger.exists()
    assert holds(own_cache.parent, TOKEN) == []


@pytest.mark.sampled(4)
@pytest.mark.parametrize("model", ROUTES)
@pytest.mark.parametrize("way", WAYS)
def test_an_error_does_not_show_a_token(model: str, way: str, own_cache: Path) -> None:
    with (
        Provider(model, status=400) as server,
        Client(cache_dir=own_cache, base_url=server.root, api_key="k") as client,
        pytest.raises(LLMError) as caught,
    ):
        ask(client, way, model, tools=[SERVER])
    assert "cannot use" in str(caught.value)
    assert TOKEN not in f"{caught.value} {vars(caught.value)!r}"


@pytest.mark.parametrize("model", ROUTES)
def test_every_payload_fits_the_types_of_its_sdk(model: str) -> None:
    with Provider(model) as server, Client(cache="off", base_url=server.root, api_key="k") as client:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            client.call(
                model, "Hi", tools=[SERVER, {**SERVER, "server_label": "more", "authorization": None}]
            )
        (body,) = server.bodies
    check = {"responses": RESPONSES.check, "gemini": GEMINI.check}.get(ROUTES[model])
    assert (problems(body, BetaMessages) if check is None else check(body)) == []
    assert len(body["tools"]) == 2


@pytest.mark.parametrize("way", ["call_many", "rounds", "samples"])
@pytest.mark.parametrize("model", ROUTES)
def test_every_request_of_several_has_the_token(model: str, way: str) -> None:
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    with (
        Provider(model) as server,
        Client(cache="off", base_url=server.root, api_key="k") as client,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        if way == "call_many":
            client.call_many(model, ["a", "b", "c"], tools=[SERVER], progress=False)
        elif way == "samples":
            client.call(model, "Hi", tools=[SERVER], n=2, unsupported="drop", max_retries=0)
        else:
            client.call(model, "Hi", tools=[SERVER, add], max_tool_rounds=2)
        assert server.bodies
        assert all(TOKEN in json.dumps(body) for body in server.bodies)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("model", [model for model in ROUTES if not model.startswith("xai")])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("tools", [["web_search"], ["web_search", SERVER]])
def test_a_tool_by_its_name_stands_beside_a_server(model: str, way: str, tools: list[Any]) -> None:
    with (
        Provider(model) as server,
        Client(cache="off", base_url=server.root, api_key="k") as client,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        ask(client, way, model, tools=tools)
        (body,) = server.bodies
    assert len(body["tools"]) == len(tools)
    assert "web_search" in str(body["tools"]) or "google_search" in str(body["tools"])
    assert (TOKEN in json.dumps(body)) == (SERVER in tools)


@pytest.mark.parametrize("model", ["claude-opus-5-5", "gemini-3.8-flash"])
@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ({"require_approval": None}, "require_approval='never'"),
        ({"require_approval": "always"}, "require_approval='never'"),
        ({"server_url": None}, "no server_url"),
        ({"tunnel_id": "t"}, "tunnel_id"),
        ({"allowed_callers": ["direct"]}, "allowed_callers"),
        ({"allowed_tools": {"read_only": True}}, "allowed_tools"),
    ],
)
def test_what_has_no_form_is_refused_before_anything_is_sent(model: str, more: JSON, problem: str) -> None:
    with Client(cache="off", api_key="k") as client, pytest.raises(UnsupportedParameterError) as caught:
        client.call(model, "Hi", tools=[{**SERVER, **more}])
    assert problem in str(caught.value)
    assert TOKEN not in str(caught.value)


def test_allowed_tools_and_headers_have_forms_at_claude() -> None:
    tool = {
        **SERVER,
        "authorization": None,
        "headers": {"Authorization": f"Bearer {OTHER}"},
        "allowed_tools": ["find"],
    }
    with (
        Provider("claude-opus-5-5") as server,
        Client(cache="off", base_url=server.root, api_key="k") as client,
    ):
        client.call("claude-opus-5-5", "Hi", tools=[tool], extra_headers={"Anthropic-Beta": "one,two"})
        (body,) = server.bodies
        assert server.headers[0]["anthropic-beta"] == "one,two,mcp-client-2025-11-20"
    assert body["mcp_servers"][0]["authorization_token"] == OTHER
    (toolset,) = body["tools"]
    assert (toolset["default_config"], toolset["configs"]) == (
        {"enabled": False},
        {"find": {"enabled": True}},
    )


@pytest.mark.parametrize(
    ("tool", "problem"),
    [
        ({"type": "mcp"}, "server_label"),
        ({**SERVER, "server_label": "a b"}, "server_label"),
        ({**SERVER, "authorization": f"Bearer {TOKEN}"}, "without the word Bearer"),
        ({**SERVER, "authorization": 5}, "authorization"),
        ({**SERVER, "authorization": f"{TOKEN}\n"}, "authorization"),
        ({**SERVER, "headers": [OTHER]}, "headers"),
        ({**SERVER, "headers": {"X-Key": 5}}, "X-Key"),
    ],
)
def test_a_wrong_server_is_an_error_without_its_token(tool: JSON, problem: str) -> None:
    with Client(cache="off", api_key="k") as client, pytest.raises(RequestError) as caught:
        client.call("gpt-5.2", "Hi", tools=[tool])
    assert problem in str(caught.value)
    assert TOKEN not in str(caught.value)
    assert OTHER not in str(caught.value)


@pytest.mark.parametrize(
    "headers", [{"X-Key": OTHER}, {"authorization": OTHER}, {"Authorization": OTHER, "X-Key": OTHER}]
)
def test_claude_takes_one_token(headers: JSON) -> None:
    with Client(cache="off", api_key="k") as client, pytest.raises(UnsupportedParameterError) as caught:
        client.call("claude-opus-5-5", "Hi", tools=[{**SERVER, "headers": headers}])
    assert "headers" in str(caught.value)
    assert OTHER not in str(caught.value)


def test_two_servers_need_two_labels() -> None:
    with Client(cache="off", api_key="k") as client, pytest.raises(RequestError, match="labels of their own"):
        client.call("gpt-5.2", "Hi", tools=[SERVER, {**SERVER, "authorization": OTHER}])


def test_a_batch_takes_no_token(own_cache: Path) -> None:
    with (
        Client(cache_dir=own_cache, api_key="k") as client,
        pytest.raises(RequestError, match="delivery='live'"),
    ):
        client.call_many("gpt-5.2", ["Hi"], tools=[SERVER], delivery="batch", progress=False)
    assert holds(own_cache.parent, TOKEN) == []


def test_auto_sends_a_token_live(own_cache: Path) -> None:
    with (
        Provider("gpt-5.2") as server,
        Client(cache_dir=own_cache, base_url=server.root, api_key="k") as client,
    ):
        results = client.call_many("gpt-5.2", ["Hi"], tools=[SERVER], delivery="auto", progress=False)
        assert (len(results.errors), len(server.bodies)) == (0, 1)


def test_a_server_without_a_token_keeps_its_key_of_before() -> None:
    from llm_provider._core.formats import registry
    from llm_provider._core.requests.request import Request
    from llm_provider._core.requests.routing import resolve

    tool = {"type": "mcp", "server_label": "docs", "server_url": "https://mcp.example/docs"}
    target = resolve("gpt-5.2")
    encoded = registry.load("openai").encode(Request.build("gpt-5.2", "Hi", {"tools": [tool]}), target)
    assert encoded.payload["tools"] == [tool]
