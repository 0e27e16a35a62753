"""The arguments of `embed`: what is taken, how it is normalised, and what is refused unsent."""

import dataclasses
from typing import Any

import numpy
import pandas
import pytest

from llm_provider._core.pace.call_limits import Timeouts
from llm_provider._core.requests.embed_request import SHARED, EmbedRequest
from llm_provider._core.requests.parameters import BatchParameters, EmbedParameters
from llm_provider._core.requests.request import Request

MODEL = "text-embedding-3-small"


def build(inputs: Any = ("Hi",), model: Any = MODEL, **parameters: Any) -> EmbedRequest:
    return EmbedRequest.build(model, inputs, parameters)  # type: ignore[arg-type]  # wrong ones are tried too


class TestTexts:
    @pytest.mark.parametrize(
        "inputs",
        [
            ["a", "b"], ("a", "b"), (text for text in "ab"), {"a": 1, "b": 2}.keys(), numpy.array(["a", "b"]),
            pandas.Series(["a", "b"]),
        ],
    )  # fmt: skip
    def test_whatever_has_an_order_is_taken(self, inputs: Any) -> None:
        texts = build(inputs).inputs
        assert texts == ("a", "b")
        assert {type(text) for text in texts} == {str}


OF_DELIVERY = {"batch_size", "delivery", "resend"}
"""The client takes them out before it builds a request."""


class TestParameters:
    def test_every_parameter_has_a_field_and_the_other_way_round(self) -> None:
        names = {field.name for field in dataclasses.fields(EmbedRequest)}
        assert names == {"model", "inputs", *EmbedParameters.__annotations__} - OF_DELIVERY

    def test_those_that_call_has_too_are_checked_as_call_does(self) -> None:
        shared = EmbedParameters.__annotations__.keys() & BatchParameters.__annotations__.keys()
        assert shared == EmbedParameters.__annotations__.keys() - {"dimensions"}
        # A call has it among its options.
        shared -= OF_DELIVERY | {"upstream"}
        assert shared == {*SHARED}
        values: dict[str, Any] = {
            "strict_model": True, "timeout": 3, "deadline": 5, "max_retries": 1, "outage_patience": 0,
            "cache": False, "in_batch": "wait", "extra_body": {"user": "x"}, "extra_headers": {"X-Own": "1"},
            "base_url": "http://localhost", "api_key": "sk-secret",
        }  # fmt: skip
        assert values.keys() == shared - {"budget"}
        ours, theirs = build(**values), Request.build(MODEL, "Hi", values)  # type: ignore[arg-type]  # as above
        for name in values:
            assert getattr(ours, name) == getattr(theirs, name)
        assert ours.timeout == Timeouts(total=3)
        assert ours.cache == "off"
        budget = build(budget=0.5).budget
        assert budget is not None
        assert budget.limit == Request.build(MODEL, "Hi", {"budget": 0.5}).budget.limit  # type: ignore[union-attr]  # known to be set here

    @pytest.mark.parametrize("dimensions", [1, 256, 3072, numpy.int64(8)])
    def test_dimensions(self, dimensions: Any) -> None:
        checked = build(dimensions=dimensions).dimensions
        assert (type(checked), checked) == (int, dimensions)

    def test_none_means_not_set(self) -> None:
        assert build(**dict.fromkeys(EmbedParameters.__annotations__.keys() - OF_DELIVERY)) == build()
