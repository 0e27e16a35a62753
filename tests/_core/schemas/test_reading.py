"""The JSON in the text of an answer. Golden pairs have texts, and nulls of schemas."""

from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field

from llm_provider._core.schemas.reading import NoMatchError, read
from support import describe_format


class City(BaseModel):
    name: str
    people: int = Field(default=1, ge=1)


BERN = City(name="Bern", people=2)
JSON = '{"name": "Bern", "people": 2}'


class TestSources:
    def test_each_place_is_named_without_addresses(self) -> None:
        with pytest.raises(NoMatchError) as caught:
            read('[{"name": 1, "people": 0}]', describe_format(list[City]))
        lines = str(caught.value).splitlines()
        assert [line.partition(":")[0] for line in lines] == ["$[0].name", "$[0].people"]
        assert "http" not in str(caught.value)


class TestWrappers:
    @pytest.mark.parametrize(
        ("response_format", "text", "value"),
        [
            (list[int], '{"answer": [1]}', [1]), (list[int], "[1]", [1]),
            (list[int], 'So: {"answer": [1]}', [1]), (list[int], "So: [1]", [1]),
            (int | None, '{"answer": null}', None), (Literal["yes", "no"], '{"answer": "yes"}', "yes"),
            (Literal["yes", "no"], '"yes"', "yes"), (bool, '{"answer": false}', False),
            (City | list[int], JSON, BERN), (City | list[int], f'{{"answer": {JSON}}}', BERN),
            ({"type": "array"}, '{"answer": [1]}', [1]),
        ],
    )  # fmt: skip
    def test_an_answer_is_unwrapped(self, response_format: Any, text: str, value: Any) -> None:
        assert read(text, describe_format(response_format)).value == value


class TestNulls:
    def test_a_null_stands_for_an_absent_field(self) -> None:
        assert read('{"name": "Bern", "people": null}', describe_format(City)).value == City(name="Bern")
        with pytest.raises(NoMatchError, match="name"):
            read('{"name": null}', describe_format(City))
