"""What each family of Claude models accepts."""

import pydantic
import pytest

from anthropic_support import encode


class Table(pydantic.BaseModel):
    cells: dict[str, int]


@pytest.mark.parametrize("model", ["claude-3-haiku-20240307", "claude-sonnet-4-20250514", "claude-opus-4-0"])
def test_older_models_get_the_schema_in_the_prompt(model: str) -> None:
    encoded = encode("Hi", model, response_format=Table, system="Be brief.")
    assert "output_config" not in encoded.payload
    first, second = encoded.payload["system"]
    assert first["text"] == "Be brief."
    assert '"cells"' in second["text"]
    assert encoded.structure is not None
    assert encoded.structure.in_prompt
