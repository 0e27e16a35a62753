"""Every parameter can be found by `help`, `inspect` and notebooks. Type checkers: tests/typing."""

import inspect
import pydoc
import typing
from typing import Any

import pytest

import llm_provider
from llm_provider import BatchParameters, Client, EmbedParameters, Parameters
from llm_provider._core.requests.parameters import ClientParameters, EstimateParameters
from support import RunScript

TAKEN: dict[str, Any] = {
    **dict.fromkeys(["call", "acall", "stream", "astream", "count_tokens", "acount_tokens"], Parameters),
    **dict.fromkeys(["call_many", "acall_many", "iter_many", "aiter_many", "submit_many"], BatchParameters),
    **dict.fromkeys(["embed", "aembed"], EmbedParameters),
    **dict.fromkeys(["estimate", "aestimate"], EstimateParameters),
}


@pytest.mark.parametrize("name", TAKEN)
def test_signatures_and_docstrings_name_every_parameter(name: str) -> None:
    for function in (getattr(llm_provider, name), getattr(Client, name)):
        signature, docstring = inspect.signature(function), inspect.getdoc(function)
        for parameter in TAKEN[name].__annotations__:
            assert signature.parameters[parameter].kind is inspect.Parameter.KEYWORD_ONLY
            assert signature.parameters[parameter].default is None
            assert f"\n    {parameter}: " in (docstring or "")
        assert not any(
            parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in signature.parameters.values()
        )
        assert "**parameters" not in (docstring or "")
        assert typing.get_type_hints(function)["parameters"] == typing.Unpack[TAKEN[name]]


def test_a_client_names_its_defaults_and_options() -> None:
    assert ClientParameters.__annotations__.keys() == inspect.signature(Client).parameters.keys()
    assert Parameters.__annotations__.keys() <= inspect.signature(Client.with_options).parameters.keys()
    assert "\n    temperature: Randomness" in (inspect.getdoc(Client) or "")


def test_help_explains_them() -> None:
    text = pydoc.render_doc(llm_provider.call, renderer=pydoc.plaintext)
    assert "temperature: float | None = None" in text.replace("'", "")  # Python 3.14 leaves the quotes out
    assert "temperature: Randomness of the answer, from 0 to 2." in text
    assert "draw: The number of the first sample, from 0. `draw=3` is the fourth sample" in text
    assert "temperature: Randomness" in str(llm_provider.call.__doc__)


def test_without_source_names_and_types_remain(run_script: RunScript) -> None:
    program = """
        import inspect, pydoc, typing
        inspect.getsource = lambda module: (_ for _ in ()).throw(OSError("no source"))
        import llm_provider
        text = pydoc.render_doc(llm_provider.call, renderer=pydoc.plaintext)
        assert "temperature: float | None = None" in text.replace("'", "")
        assert "**parameters: See `Parameters`." in text
        assert llm_provider.call_many.__annotations__.keys() >= {"model", "parameters"}
    """
    run_script(program)
