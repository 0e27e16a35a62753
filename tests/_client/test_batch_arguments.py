"""The arguments of batches, before anything is prepared."""

from __future__ import annotations

from typing import Any

import pytest

from llm_provider import RequestError
from llm_provider._client.batch_arguments import by_model, check_choices, for_each, one_model, taken
from llm_provider._requests.inputs import BatchInputs


def test_a_parameter_is_known_under_the_function_that_has_it() -> None:
    given: Any = {"on_eror": "raise"}
    with pytest.raises(TypeError, match=r"call_many\(\) got .* did you mean 'on_error'"):
        taken("call_many", ["a"], given)
    with pytest.raises(TypeError, match=r"iter_many\(\) got an unexpected parameter 'on_error'"):
        taken("iter_many", ["a"], {"on_error": "raise"})  # type: ignore[typeddict-unknown-key]  # on purpose


def test_metadata_of_a_call_stays_a_parameter() -> None:
    parameters: Any = {"metadata": {"run": "7"}}
    assert taken("call_many", ["a"], parameters).metadata is None
    assert parameters == {"metadata": {"run": "7"}}
    parameters = {"metadata": [1]}
    found = taken("call_many", ["a"], parameters)
    assert found.metadata is not None
    assert found.metadata("a") == 1
    assert parameters == {}


def test_each_model_gets_all_inputs() -> None:
    each = for_each(["a", "b"], BatchInputs(iter(["x", "y"])))
    assert [(model, list(part.prompts)) for model, part in each] == [("a", ["x", "y"]), ("b", ["x", "y"])]  # type: ignore[arg-type]  # no asynchronous iterable
    found: Any = by_model(["a", "b"], [1, 2, 3, 4])  # type: ignore[arg-type]  # any sequence
    assert found == {"a": [1, 2], "b": [3, 4]}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("ignore", True, False), "on_error must be 'return' or 'raise', not 'ignore'"),
        (("return", 1, False), "wait must be True or False, not 1"),
        (("return", True, "x"), "dry_run must be True or False, not 'x'"),
    ],
)
def test_choices_are_checked(given: Any, said: str) -> None:
    with pytest.raises(RequestError, match=said):
        check_choices(*given)


def test_one_model_is_enough_where_results_have_no_name_of_it() -> None:
    one_model("iter_many", "gpt-6.1-sol")
    with pytest.raises(RequestError, match=r"iter_many\(\) takes one model, not a tuple"):
        one_model("iter_many", ("a", "b"))
