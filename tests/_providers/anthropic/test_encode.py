"""JSON without a schema in Anthropic's format."""

import pytest

from anthropic_support import encode
from llm_provider._providers.anthropic.encode import JSON_ONLY


class TestResponseFormat:
    @pytest.mark.parametrize("system", [None, "Be brief."])
    def test_json_without_a_schema_is_asked_for_in_the_system_prompt(self, system: str | None) -> None:
        with pytest.warns(UserWarning, match="json_object"):
            payload = encode("Hi", response_format={"type": "json_object"}, system=system).payload
        assert "output_config" not in payload
        if system is None:
            assert payload["system"] == JSON_ONLY
        else:
            assert [block["text"] for block in payload["system"]] == [system, JSON_ONLY]
