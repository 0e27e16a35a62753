"""The output items of a response as an assistant message."""

from llm_provider._providers.openai_responses.items import message_of


def test_a_message_has_the_text_and_the_calls_of_all_items() -> None:
    call = {"type": "function_call", "call_id": "c1", "name": "now", "arguments": "{}"}
    said = {"type": "message", "content": [{"type": "output_text", "text": "Hello"}]}
    message = message_of([said, call, said])
    assert message["content"] == "HelloHello"
    assert message["tool_calls"] == [
        {"id": "c1", "type": "function", "function": {"name": "now", "arguments": "{}"}}
    ]
    assert message["provider_specific_fields"] == {"provider": "openai", "content": [said, call, said]}
