"""The arguments of `embed`: what is taken, how it is normalised, and what is refused unsent."""

from __future__ import annotations

import dataclasses
import math
import traceback
from typing import Any

import numpy
import pandas
import pytest

from llm_provider._errors import RequestError
from llm_provider._limits.timeouts import Timeouts
from llm_provider._requests.api_keys import APIKey
from llm_provider._requests.embed_request import SHARED, EmbedRequest
from llm_provider._requests.parameters import BatchParameters, EmbedParameters
from llm_provider._requests.request import Request

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

    def test_no_texts_and_equal_texts_are_no_mistake(self) -> None:
        assert (build([]).inputs, build(["a", "a"]).inputs) == ((), ("a", "a"))

    @pytest.mark.parametrize(
        ("problem", "inputs"),
        [
            (r"write embed\(model, \[text\]\)", "Hi"),
            *(
                (type(inputs).__name__, inputs)
                for inputs in (b"Hi", None, 3, {"a": "b"}, {"a"}, frozenset("a"))
            ),
            *(
                (r"inputs\[0\] holds token ids.*encoding\.decode", inputs)
                for inputs in ([1, 2], [[1, 2], [3]], numpy.array([1, 2]), [(1, 2)])
            ),
            (r"inputs\[2\] is empty", ["a", "b", ""]),
            *(
                (r"inputs\[1\] must be a str", ["a", text])
                for text in (None, math.nan, b"a", [], {"text": "a"})
            ),
        ],
    )
    def test_anything_else_is_named(self, problem: str, inputs: Any) -> None:
        with pytest.raises(RequestError, match=problem):
            build(inputs)


OF_DELIVERY = {"delivery", "resend"}
"""The client takes them out before it builds a request."""


class TestParameters:
    def test_every_parameter_has_a_field_and_the_other_way_round(self) -> None:
        names = {field.name for field in dataclasses.fields(EmbedRequest)}
        assert names == {"model", "inputs", *EmbedParameters.__annotations__} - OF_DELIVERY

    def test_those_that_call_has_too_are_checked_as_call_does(self) -> None:
        shared = EmbedParameters.__annotations__.keys() & BatchParameters.__annotations__.keys()
        assert shared == EmbedParameters.__annotations__.keys() - {"dimensions"} == {*SHARED, *OF_DELIVERY}
        shared -= OF_DELIVERY
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

    def test_the_key_is_sealed_and_in_no_traceback(self) -> None:
        parameters: Any = {"api_key": "sk-secret"}
        request = EmbedRequest.build(MODEL, ["Hi"], parameters)
        assert request.api_key == APIKey("sk-secret")
        assert "sk-secret" not in repr(request) + repr(parameters)
        with pytest.raises(RequestError) as caught:
            EmbedRequest.build(MODEL, [""], {"api_key": "sk-secret"})
        written = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
        inside = [frame for frame in written.stack if "_requests" in frame.filename]
        assert inside
        assert not any("sk-secret" in str(frame.locals) for frame in inside)

    @pytest.mark.parametrize("dimensions", [1, 256, 3072, numpy.int64(8)])
    def test_dimensions(self, dimensions: Any) -> None:
        checked = build(dimensions=dimensions).dimensions
        assert (type(checked), checked) == (int, dimensions)

    @pytest.mark.parametrize("dimensions", [0, -1, 1.5, True, "256", 2**31])
    def test_bad_dimensions(self, dimensions: Any) -> None:
        with pytest.raises(RequestError, match="dimensions must be an int from 1"):
            build(dimensions=dimensions)

    def test_none_means_not_set(self) -> None:
        assert build(**dict.fromkeys(EmbedParameters.__annotations__.keys() - OF_DELIVERY)) == build()

    def test_an_unknown_parameter_suggests_a_near_one(self) -> None:
        with pytest.raises(TypeError, match=r"embed\(\) got .* 'dimension'; did you mean 'dimensions'\?"):
            build(dimension=3)
        with pytest.raises(TypeError, match=r"embed\(\) got an unexpected parameter 'temperature' \("):
            build(temperature=0)

    @pytest.mark.parametrize("model", ["", "a b", None, "../x"])
    def test_bad_models(self, model: Any) -> None:
        with pytest.raises(RequestError, match="is not a model name"):
            build(model=model)

    def test_is_frozen(self) -> None:
        with pytest.raises(dataclasses.FrozenInstanceError):
            build().model = "x"  # type: ignore[misc]  # on purpose
