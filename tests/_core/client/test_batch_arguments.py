"""The arguments of batches, parsed once."""

import pytest

from llm_provider._core.client.batch_arguments import parse_batch


def test_a_parameter_is_known_under_the_function_that_has_it() -> None:
    with pytest.raises(TypeError, match=r"iter_many\(\) got an unexpected parameter 'on_error'"):
        parse_batch("iter_many", "a", ["a"], {"on_error": "raise"}, {})  # type: ignore[typeddict-unknown-key]  # on purpose


def test_metadata_of_a_call_stays_a_parameter() -> None:
    parsed = parse_batch("call_many", "m", ["a"], {"metadata": {"run": "7"}}, {})
    assert parsed.inputs[0].metadata is None
    assert parsed.parameters == {"metadata": {"run": "7"}}
    parsed = parse_batch("call_many", "m", ["a"], {"metadata": [1]}, {})
    assert parsed.inputs[0].metadata("a") == 1
    assert parsed.parameters == {}
