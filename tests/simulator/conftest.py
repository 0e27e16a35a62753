"""The plainest client there is."""

import contextlib
import functools
import http.client
import json
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import pytest

from llm_provider.simulator import Simulator


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def events(self) -> list[Any]:
        """The data of all server-sent events, ``[DONE]`` as a string."""
        lines = self.body.decode().replace("\r\n", "\n").split("\n")
        data = [line.removeprefix("data: ") for line in lines if line.startswith("data: ")]
        return [event if event == "[DONE]" else json.loads(event) for event in data]


class Post(Protocol):
    def __call__(self, path: str, body: Any, headers: Mapping[str, str] | None = None) -> Answer: ...


def send(simulator: Simulator, path: str, body: Any, headers: Mapping[str, str] | None = None) -> Answer:
    connection = http.client.HTTPConnection("127.0.0.1", simulator.port, timeout=60)
    with contextlib.closing(connection):
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        connection.request("POST", path, raw, dict(headers or {}))
        response = connection.getresponse()
        fields = {name.lower(): value for name, value in response.getheaders()}
        return Answer(response.status, fields, response.read())


@pytest.fixture
def post(simulator: Simulator) -> Post:
    return functools.partial(send, simulator)


@pytest.fixture
def chat(post: Post) -> Post:
    """Like ``post``, with a chat completions body filled up from a prompt or from some fields."""

    def send_chat(path: str, body: Any, headers: Mapping[str, str] | None = None) -> Answer:
        fields = {"content": body} if isinstance(body, str) else dict(body)
        content = fields.pop("content", "hello")
        whole = {"model": "gpt-6.1-sol", "messages": [{"role": "user", "content": content}], **fields}
        return post(f"/{path}/v1/chat/completions", whole, headers)

    return send_chat
