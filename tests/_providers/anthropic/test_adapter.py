"""A conversation through the SDK, and what is imported before one."""

from __future__ import annotations

import subprocess
import sys

from anthropic_support import CURRENT, exchange, outgoing, user
from llm_provider._providers.anthropic import adapter
from llm_provider.simulator import Simulator

TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "Tells the weather.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


def test_a_whole_conversation_with_a_tool(simulator: Simulator) -> None:
    order = outgoing(simulator, "Weather in Bern?", CURRENT, tools=[TOOL], tool_choice="required")
    choice = adapter.decode(exchange(order, stream=True)).choices[0]
    assert choice.finish_reason == "tool_calls"
    result = {"role": "tool", "tool_call_id": choice.tool_calls[0].id, "content": "sun"}
    messages = [user("Weather in Bern?"), choice.message, result]
    assert adapter.decode(exchange(outgoing(simulator, messages, CURRENT, tools=[TOOL]))).choices[0].text


def test_no_sdk_is_imported_before_the_first_connection() -> None:
    code = (
        "import sys\n"
        "from llm_provider._requests.request import Request\n"
        "from llm_provider._requests.routing import resolve\n"
        "from llm_provider._providers.anthropic import adapter\n"
        "adapter.encode(Request.build('claude-opus-5', 'Hi', {}), resolve('claude-opus-5'))\n"
        "assert not {'anthropic', 'httpx', 'httpx2', 'aiohttp'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
