"""One server with the name `lab`, and answers of the Responses API that it gives."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from llm_provider import Client, Host
from raw_server import Behaviour, RawServer

JSON = dict[str, Any]
USAGE = {"input_tokens": 10, "output_tokens": 8, "total_tokens": 18}


def body(*texts: tuple[str | None, str], usage: JSON = USAGE, **fields: Any) -> JSON:
    """A response with a message for each pair of a phase and a text."""
    output = [
        {
            "type": "message",
            "id": f"msg_{number}",
            "role": "assistant",
            "status": "completed",
            **({} if phase is None else {"phase": phase}),
            "content": [{"type": "output_text", "text": text, "annotations": []}],
        }
        for number, (phase, text) in enumerate(texts)
    ]
    whole = {"id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "model": "m"}
    return {**whole, "output": output, "usage": usage, **fields}


def events_of(reply: JSON, pieces: int = 4, **last: Any) -> list[JSON]:
    """The stream of a response, without numbers; `last` are fields that its last event has instead."""
    events: list[JSON] = [{"type": "response.created", "response": {"id": "resp_1"}}]
    for position, item in enumerate(reply["output"]):
        place = {"output_index": position, "item_id": item["id"]}
        events.append({"type": "response.output_item.added", **place, "item": {**item, "content": []}})
        text, size = item["content"][0]["text"], max(1, len(item["content"][0]["text"]) // pieces)
        events += [
            {
                "type": "response.output_text.delta",
                **place,
                "content_index": 0,
                "delta": text[start : start + size],
            }
            for start in range(0, len(text), size)
        ]
        events.append({"type": "response.output_item.done", **place, "item": item})
    return [*events, {"type": "response.completed", "response": {**reply, **last}}]


@contextmanager
def host(
    behaviour: Behaviour, cache: Path | None = None, **fields: Any
) -> Iterator[tuple[Client, RawServer]]:
    """A client of one server with the name `lab`, whose answers cost a dollar a million tokens."""
    prices = {"*": {"input": 1.0, "output": 1.0}}
    with RawServer(behaviour) as server:
        lab = Host("lab", f"{server.root}/v1", prices=prices, **fields)
        with Client(hosts=[lab], cache_dir=cache, keys={"lab": "k"}, max_retries=2) as client:
            yield client, server
