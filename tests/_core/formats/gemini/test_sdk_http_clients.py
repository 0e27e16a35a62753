"""What google-genai's HTTP clients send."""

from gemini_support import WEATHER, Way, both_ways, outgoing, run, streamed
from llm_provider.simulator import Simulator


@both_ways
def test_exactly_the_payload_is_sent(simulator: Simulator, transport: str, way: Way) -> None:
    request = outgoing(
        simulator.url("gemini"),
        [
            {"role": "user", "content": "Weather in Bern?"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": "c",
                        "function": {"name": "weather", "arguments": '{"my_city": "Bern", "none": null}'},
                    }
                ],
            },
            {"role": "tool", "tool_call_id": "c", "content": "sun"},
        ],
        system="Be short",
        tools=[WEATHER],
        tool_choice="auto",
        max_tokens=50,
        reasoning_effort="low",
        response_format={"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}},
        extra_headers={"X-Own": "1"},
        extra_body={"safetySettings": [{"category": "x", "threshold": "y"}], "service_tier": "flex"},
    )
    run(transport, way, request)
    (seen,) = simulator.requests()
    assert seen.body == request.encoded.payload
    action = "streamGenerateContent?alt=sse" if way is streamed else "generateContent"
    assert seen.path == f"/gemini/v1/models/gemini-3.8-flash:{action}"
    assert (seen.headers["x-own"], seen.headers["x-server-timeout"]) == ("1", "30")
    assert "authorization" not in seen.headers
