"""Payloads of Chat Completions: names of parameters, and what each host lacks."""

from typing import Any

import pytest

from llm_provider._core.errors import UnsupportedParameterError
from llm_provider._core.formats.openai_chat import encode as chat
from llm_provider._core.requests.parameter_table import PARAMETERS
from llm_provider._core.requests.request import Request
from llm_provider._core.requests.routing import ROUTES, resolve


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
