"""Payloads of Chat Completions: what each host lacks, and schemas of answers."""

from typing import Any

import pytest
from pydantic import BaseModel, Field

from llm_provider._errors import UnsupportedParameterError
from llm_provider._providers.openai_chat import encode as chat
from llm_provider._requests.parameter_table import PARAMETERS
from llm_provider._requests.request import Request
from llm_provider._requests.routing import ROUTES, resolve


def encode(model: str, prompt: Any = "Hi", **parameters: Any) -> dict[str, Any]:
    return chat.encode(Request.build(model, prompt, parameters), resolve(model)).payload


class TestEncode:
    def test_the_name_of_max_tokens_is_the_callers(self) -> None:
        request = Request.build("gpt-5.5", "Hi", {"max_tokens": 9})
        encoded = chat.encode(request, resolve("gpt-5.5"), accepts=chat.OPENAIS)
        assert encoded.payload["max_completion_tokens"] == 9
        assert "max_tokens" not in encoded.payload

    @pytest.mark.parametrize("route", [route for route in ROUTES.values() if route.adapter == "openai"])
    def test_what_a_host_lacks_is_refused_with_its_remedy(self, route: Any) -> None:
        values = {"seed": 1, "logprobs": True, "top_logprobs": 2}
        for name in route.lacks & values.keys():
            with pytest.raises(UnsupportedParameterError, match=PARAMETERS[name].remedy) as caught:
                encode(f"{route.provider}/some-model", **{name: values[name]})
            assert caught.value.provider == route.provider

    def test_openais_models_are_held_to_it(self) -> None:
        class City(BaseModel):
            name: str
            people: int = Field(1, ge=1)

        class Table(BaseModel):
            cells: dict[str, int]

        inner = encode("gpt-6.1-sol", response_format=City)["response_format"]["json_schema"]
        assert (inner["name"], inner["strict"]) == ("City", True)
        assert inner["schema"]["required"] == ["name", "people"]
        assert inner["schema"]["properties"]["people"]["anyOf"][0]["minimum"] == 1
        tuned = encode("ft:gpt-5.5:me::1", response_format=City)["response_format"]["json_schema"]
        assert "minimum" not in tuned["schema"]["properties"]["people"]["anyOf"][0]
        # Strict mode has no form for free keys.
        free = encode("gpt-6.1-sol", response_format=Table)["response_format"]["json_schema"]
        assert free == {"name": "Table", "schema": Table.model_json_schema()}
        # The rules of other hosts differ, and the schema stays as it is.
        other = encode("groq/llama", response_format=City)["response_format"]["json_schema"]
        assert other == {"name": "City", "schema": City.model_json_schema()}

    @pytest.mark.parametrize("model", ["gpt-6.1-sol", "groq/llama", "litellm/cohere/command"])
    def test_an_answer_that_is_no_object_is_wrapped(self, model: str) -> None:
        schema = encode(model, response_format=list[int])["response_format"]["json_schema"]["schema"]
        assert schema["properties"] == {"answer": {"items": {"type": "integer"}, "type": "array"}}
