"""The day of a model's retirement, as the lists of Anthropic and OpenAI tell it, and one warning of it."""

import json
import pickle
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from counting_server import CountingServer
from llm_provider import Client
from llm_provider._core.journey import recorder
from support import WAYS, ask
from wire_shapes import SHAPES

OLD, NEW = (
    {"anthropic": "claude-old-1", "openai": "gpt-old"},
    {"anthropic": "claude-new-2", "openai": "gpt-new"},
)
CLAUDE = {"type": "model", "display_name": "x", "created_at": "2026-01-01T00:00:00Z"}
GPT = {"object": "model", "created": 1, "owned_by": "openai"}
LISTS: dict[str, list[dict[str, Any]]] = {
    "anthropic": [
        {**CLAUDE, "id": OLD["anthropic"], "lifecycle": "deprecated", "retires_at": "2027-01-31T08:00:00Z"},
        {**CLAUDE, "id": NEW["anthropic"], "lifecycle": "active", "retires_at": None},
        {**CLAUDE, "id": "claude-gone", "lifecycle": "retired", "retires_at": "2026-01-31T08:00:00Z"},
    ],
    "openai": [
        {**GPT, "id": OLD["openai"], "shutdown_date": "2027-01-31"},
        {**GPT, "id": NEW["openai"], "shutdown_date": None},
        {**GPT, "id": "gpt-odd", "shutdown_date": "soon"},
    ],
}


def answer(path: str, headers: Mapping[str, str], body: Any) -> tuple[int, Mapping[str, str], Any]:
    provider = "anthropic" if "x-api-key" in headers else "openai"
    if body is None:
        return 200, {}, {"object": "list", "data": LISTS[provider], "has_more": False}
    shape = SHAPES[provider][0]
    if not body.get("stream"):
        return 200, {}, {**shape.whole, "model": body["model"]}
    return 200, {"content-type": "text/event-stream"}, shape.stream()


@pytest.fixture(params=LISTS)
def provider(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def client(provider: str, tmp_path: Path) -> Iterator[Client]:
    prices = tmp_path / "prices.csv"
    rows = (f"{provider},{names[provider]},1,1\n" for names in (OLD, NEW))
    prices.write_text("provider,model,input,output\n" + "".join(rows))
    recorder.RETIRING.clear()
    with CountingServer(answer) as server:
        base = server.root if provider == "anthropic" else f"{server.root}/v1"
        with Client(cache="off", api_key="k", prices=prices, base_url=base) as client:
            yield client
    recorder.RETIRING.clear()


def test_a_list_has_the_day(client: Client, provider: str) -> None:
    models = client.models(provider, live=True)
    listed = {model.name.rpartition("/")[2]: model.retires_at for model in models}
    odd = {} if provider == "anthropic" else {"gpt-odd": None}
    assert listed == {OLD[provider]: "2027-01-31", NEW[provider]: None, **odd}
    assert json.loads(json.dumps(listed)) == listed
    assert pickle.loads(pickle.dumps(models)) == models
    assert '"retires_at": "2027-01-31"' in json.dumps(list(map(asdict, models)))


@pytest.mark.parametrize("way", WAYS)
def test_a_run_is_warned_once(client: Client, provider: str, way: str) -> None:
    old, new = f"{provider}/{OLD[provider]}", f"{provider}/{NEW[provider]}"
    with warnings.catch_warnings():
        # Nobody asks for the list by itself.
        warnings.simplefilter("error")
        ask(client, way, old)
        client.models(provider, live=True)
        ask(client, way, new)
    with pytest.warns(UserWarning, match=f"{old} retires on 2027-01-31: models") as caught:
        ask(client, way, old)
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ask(client, way, old)


def test_a_warning_as_an_error_costs_no_answer(client: Client, provider: str) -> None:
    client.models(provider, live=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert client.call(f"{provider}/{OLD[provider]}", "Hi").text
