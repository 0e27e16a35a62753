"""Which endpoint serves a model of OpenAI."""

from llm_provider._core.formats.openai import encode


def test_fields_that_only_responses_has_are_those_of_the_sdk() -> None:
    from openai.types.chat.completion_create_params import CompletionCreateParamsBase
    from openai.types.responses.response_create_params import ResponseCreateParamsBase

    of_chat = CompletionCreateParamsBase.__annotations__.keys()
    # Older releases of the SDK know fewer of them.
    assert ResponseCreateParamsBase.__annotations__.keys() - of_chat <= encode._ONLY_RESPONSES
    assert not of_chat & encode._ONLY_RESPONSES
