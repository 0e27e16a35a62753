"""An outage is doubted: a server that answers other requests is not waited for, and one that fails is."""

from collections.abc import Mapping
from typing import Any

import pytest

from counting_server import CountingServer
from llm_provider import Client, InternalServerError, Response
from wire_shapes import SHAPES

ODD = (500, {}, {"error": {"message": "cannot read this", "type": "server_error"}})


@pytest.mark.parametrize("models_listed", [True, False])
def test_five_failed_inputs_of_a_server_that_works_are_no_outage(models_listed: bool) -> None:
    answer = SHAPES["openai"][0].whole

    def reply(path: str, headers: Mapping[str, str], body: Any) -> tuple[int, Mapping[str, str], Any]:
        if path.endswith("/models"):
            return (200, {}, {"data": [{"id": "m"}]}) if models_listed else (404, {}, {})
        return (200, {}, answer) if body["model"] == "other" else ODD

    with CountingServer(reply) as server, Client(cache="off") as client:
        where: dict[str, Any] = {"base_url": f"{server.root}/v1", "api_key": "k"}
        if not models_listed:
            client.call("local/other", "Hi", **where)
        results = client.call_many(
            "local/m", [str(number) for number in range(60)], max_concurrent=8, **where
        )
        assert {type(result) for result in results} == {InternalServerError}
        assert not any("was down" in str(result) for result in results)
        assert server.paths["GET /v1/models"] == 1
        assert server.requests <= 60 + 30
        assert client.call("local/other", "Hi", **where).text


@pytest.mark.parametrize("other", ["fails", "has no list"])
def test_a_server_that_fails_as_a_whole_is_down(other: str) -> None:
    answer, down = SHAPES["openai"][0].whole, [True]

    def reply(path: str, headers: Mapping[str, str], body: Any) -> tuple[int, Mapping[str, str], Any]:
        if path.endswith("/models"):
            # The outage is over as soon as somebody asks for it.
            down.clear()
            return ODD if other == "fails" else (404, {}, {})
        return ODD if down else (200, {}, answer)

    with CountingServer(reply) as server, Client(cache="off") as client:
        results = client.call_many(
            "local/m", [str(number) for number in range(60)], max_concurrent=8,
            base_url=f"{server.root}/v1", api_key="k",
        )  # fmt: skip
        assert {type(result) for result in results} == {Response}
        assert server.paths["GET /v1/models"] == 1


def test_a_503_asks_to_come_back_later() -> None:
    loads = [True] * 13

    def reply(path: str, headers: Mapping[str, str], body: Any) -> tuple[int, Mapping[str, str], Any]:
        if path.endswith("/models"):
            return 200, {}, {"data": [{"id": "m"}]}
        if loads:
            loads.pop()
            return 503, {"retry-after": "0"}, {"error": {"message": "Loading model"}}
        return 200, {}, SHAPES["openai"][0].whole

    with CountingServer(reply) as server, Client(cache="off") as client:
        results = client.call_many(
            "local/m", [str(number) for number in range(20)], base_url=f"{server.root}/v1", api_key="k"
        )
        assert {type(result) for result in results} == {Response}
        assert "GET /v1/models" not in server.paths
