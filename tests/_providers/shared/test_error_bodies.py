"""What the bodies of failures say, in the forms of many hosts."""

from typing import Any

import pytest

from llm_provider._errors import (
    AuthenticationError,
    BadRequestError,
    InternalServerError,
    LLMError,
    NotFoundError,
    PermissionDeniedError,
    RateLimitError,
)
from llm_provider._providers.shared import errors

WRONG_KEYS = (
    {"code": "Client specified an invalid argument", "error": "Incorrect API key provided: xa***. Get one."},
    {"error": {"message": "Incorrect API key provided", "type": "invalid_request_error"}},
    {"error": {"message": "Invalid API Key", "code": 400}},
    {"message": "invalid x-api-key"},
    {"detail": "Missing API key"},
    {"detail": [{"loc": [], "msg": "API key is invalid"}]},
    {"error": "Unauthorized"},
    {"error": {"message": "Your API key has expired.", "type": None}},
    {"error": {"message": "No API key provided"}},
    {"error": {"message": "Wrong", "code": "invalid_api_key"}},
    {"error": {"message": "Error", "details": [{"reason": "API_KEY_INVALID"}], "status": "INVALID_ARGUMENT"}},
    [
        {
            "error": {
                "code": 400,
                "message": "API key not valid. Please pass one.",
                "status": "INVALID_ARGUMENT",
            }
        }
    ],
)
UNKNOWN_MODELS = (
    {"code": "Client specified an invalid argument", "error": "Model not found: grok-99"},
    {"error": "Model not found: grok-99", "code": "invalid-argument"},
    {"object": "error", "message": "Invalid model: mistral-9", "type": "invalid_model", "code": "1500"},
    {"object": "error", "message": "Something else", "type": "invalid_model", "param": None},
    {"error": {"message": "openai/gpt-99 is not a valid model ID", "code": 400}, "user_id": "u"},
    {
        "error": {
            "message": "Model Not Exist",
            "type": "invalid_request_error",
            "code": "invalid_request_error",
        }
    },
    {"error": {"message": "The model `m` does not exist or you do not have access to it."}},
    {"error": {"message": "The requested model 'm' is unknown", "type": "invalid_request_error"}},
    {"message": "model 'm' not found, make sure the correct model ID was used"},
    {"error": {"message": "No", "code": "model_not_supported"}},
    {"error": "unknown model: m"},
)
PROMPTS = (
    {"error": "The prompt is not accepted: Incorrect API key provided"},
    {"error": {"message": "Invalid 'messages[0].content': Model not found: x", "code": "invalid_value"}},
    {"error": {"message": "Invalid model output: the model wrote no JSON", "type": "invalid_request_error"}},
    {"error": {"message": "Model does not support image input", "type": "invalid_request_error"}},
    {"error": {"message": "The model `m` does not accept temperature"}},
    {"error": {"message": "Invalid token in schema at position 3"}},
    {"error": {"message": "The image at the URL was not found"}},
    {
        "error": {
            "message": "tools.0: model 'weather' not found in definitions",
            "type": "invalid_request_error",
        }
    },
    {"error": {"message": "Missing required parameter: 'messages'"}},
)


class TestOneStatusForEverything:
    """Hosts that answer 400 to a wrong key and to an unknown model, or tell them with status 200."""

    @pytest.mark.parametrize("status", [400, 422, 200, None])
    @pytest.mark.parametrize(
        ("bodies", "kind"), [(WRONG_KEYS, AuthenticationError), (UNKNOWN_MODELS, NotFoundError)]
    )
    def test_the_message_tells_what_is_wrong(
        self, bodies: Any, kind: type[LLMError], status: int | None
    ) -> None:
        for body in bodies:
            codes, message = errors.error_fields(body)
            error = errors.from_answer(status, codes=codes, message=message)
            assert (type(error), error.retryable) == (kind, False), body
            assert error.message

    @pytest.mark.parametrize("body", PROMPTS)
    def test_a_prompt_that_is_not_accepted_is_no_wrong_key(self, body: Any) -> None:
        codes, message = errors.error_fields(body)
        assert type(errors.from_answer(400, codes=codes, message=message)) is BadRequestError

    def test_a_status_with_a_meaning_counts(self) -> None:
        for status, kind in ((403, PermissionDeniedError), (429, RateLimitError), (500, InternalServerError)):
            assert type(errors.from_answer(status, message="Invalid API key")) is kind

    def test_words_of_any_length_are_read_in_no_time(self) -> None:
        for text in ("model" + "`" * 100_000, "the " * 100_000, "invalid model " + "x" * 100_000 + " y"):
            assert errors.from_answer(400, message=text)
