"""The arguments of batches, parsed once."""

import dataclasses
from typing import Any

import pytest

from llm_provider import RequestError
from llm_provider._client.batch_arguments import parse_batch


def test_a_parameter_is_known_under_the_function_that_has_it() -> None:
    with pytest.raises(TypeError, match=r"iter_many\(\) got an unexpected parameter 'on_error'"):
        parse_batch("iter_many", "a", ["a"], {"on_error": "raise"}, {})  # type: ignore[typeddict-unknown-key]  # on purpose


def test_metadata_of_a_call_stays_a_parameter() -> None:
    parsed = parse_batch("call_many", "m", ["a"], {"metadata": {"run": "7"}}, {})
    assert parsed.inputs[0].metadata is None
    assert parsed.parameters == {"metadata": {"run": "7"}}
    parsed = parse_batch("call_many", "m", ["a"], {"metadata": [1]}, {})
    described = parsed.inputs[0].metadata
    assert described("a") == 1
    assert parsed.parameters == {}


def test_the_options_are_frozen_and_the_arguments_are_untouched() -> None:
    parameters: Any = {"delivery": "batch", "progress": False, "max_concurrent": 3, "budget": 2, "seed": 1}
    parsed = parse_batch("call_many", "m", ["a", "b"], parameters, {})
    assert parameters == {"delivery": "batch", "progress": False, "max_concurrent": 3, "budget": 2, "seed": 1}
    assert (parsed.delivery.mode, parsed.delivery.resend, parsed.progress) == ("batch", "batch", False)
    assert (parsed.total, parsed.parameters.keys()) == (2, {"seed", "budget"})
    assert parsed.concurrency.most == 3
    with pytest.raises(dataclasses.FrozenInstanceError):
        parsed.progress = True  # type: ignore[misc]  # on purpose


def test_one_model_is_enough_where_results_have_no_name_of_it() -> None:
    for function in ("iter_many", "aiter_many", "submit_many", "asubmit_many"):
        assert parse_batch(function, "gpt-6.1-sol", ["a"], {}, {}).models == ("gpt-6.1-sol",)
        with pytest.raises(RequestError, match=rf"{function}\(\) takes one model, not a tuple"):
            parse_batch(function, ("a", "b"), ["a"], {}, {})
