"""What the tests of OpenAI's formats share."""

from llm_provider._requests.routing import resolve

PRO = resolve("gpt-5.5-pro")
WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}
