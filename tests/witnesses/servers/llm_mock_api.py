"""llm-mock-api: Chat Completions, Responses and Messages by rules in Python, as only they have errors."""

from witnesses.cells import ANSWERS_TO_SCHEMA, ERRORS, PROMPT, SCHEMA_PROMPT
from witnesses.witness import Place, Way, Witness

PROGRAM = f"""
import asyncio, sys
from llm_mock_api import MockServer, MockServerOptions
from llm_mock_api.types.reply import ErrorReply, ReplyObject, ToolCall

async def main():
    server = MockServer(MockServerOptions(port=int(sys.argv[1]), host="127.0.0.1", default_chunk_size=5))
    for status in {[*ERRORS]}:
        server.when(f"fail {{status}}").reply(ReplyObject(error=ErrorReply(status, "Refused")))
    server.when({SCHEMA_PROMPT!r}).reply({ANSWERS_TO_SCHEMA!r})
    server.when({PROMPT!r}).reply("Birds can fly.")
    server.when(lambda asked: asked.last_tool_call_id is not None).reply("It is sunny.")
    server.when(lambda asked: bool(asked.tools)).reply(
        ReplyObject(tools=[ToolCall(name="weather", args={{"city": "Bern"}})])
    )
    await server.run_until_shutdown()

asyncio.run(main())
"""


def command(place: Place) -> list[str]:
    return ["python", place.write("program.py", PROGRAM), str(place.port)]


WITNESS = Witness(
    "llm-mock-api",
    "llm-mock-api",
    command,
    {
        "chat": Way("local/any", "/v1", embeds="local/any"),
        "responses": Way("gpt-6.1-sol", "/v1", {"endpoint": "responses"}),
        "messages": Way("claude-sonnet-5-5", ""),
    },
    cannot={
        ("*", "embeddings"): "it has no embeddings",
    },
)
