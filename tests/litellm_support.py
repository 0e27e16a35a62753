"""What the tests of litellm share."""

from importlib.util import find_spec
from typing import Any

import orjson
import pytest

from llm_provider._core.formats.protocol import Outgoing
from llm_provider._core.pace.call_limits import Timeouts
from llm_provider._core.requests.api_keys import APIKey
from llm_provider._core.requests.request import Request
from llm_provider._core.requests.routing import resolve
from llm_provider._core.runtime.json_pieces import canonical
from llm_provider._features.litellm import encode as adapter

# pytest installs its own filters for each test, which removes those that the import of litellm sets.
IGNORED_WARNINGS = [
    pytest.mark.filterwarnings("ignore:.*`ReadOnly` qualifier:UserWarning"),
    pytest.mark.filterwarnings(r"ignore::DeprecationWarning:litellm\."),
]
needs_litellm = pytest.mark.skipif(find_spec("litellm") is None, reason="the extra is not installed")
ANTHROPIC, OPENAI, COMPATIBLE = (
    "litellm/anthropic/claude-sonnet-5-5",
    "litellm/openai/gpt-6.1-sol",
    "hosted_vllm/m",
)
HOSTS = {ANTHROPIC: "anthropic", OPENAI: "openai", COMPATIBLE: "openai"}


def outgoing(
    base_url: str | None, messages: Any, model: str = ANTHROPIC, key: APIKey | None = None, **parameters: Any
) -> Outgoing:
    request = Request.build(model, messages, parameters)
    target = resolve(model, base_url)
    encoded = adapter.encode(request, target)
    return Outgoing(
        encoded,
        canonical(encoded.payload),
        target,
        key or APIKey("sk-secret"),
        (request.timeout or Timeouts()).over(Timeouts(total=20)),
    )


async def sent(connection: Any, order: Outgoing, *, stream: bool = False) -> Any:
    try:
        if not stream:
            return orjson.loads(await connection.send(order))
        assembler = adapter.assembler(order.encoded)
        async for batch in connection.stream(order):
            for event in batch:
                assembler.feed(event)
        return assembler.reply()
    except Exception as error:
        raise adapter.map_error(error) from error
