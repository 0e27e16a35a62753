"""Every parameter can be found by `help`, `inspect` and notebooks. Type checkers: tests/typing."""

from __future__ import annotations

import copy
import inspect
import pickle
import pydoc
import typing
from typing import Any

import pytest

import llm_provider
from llm_provider import BatchParameters, Client, EmbedParameters, Parameters, Response
from llm_provider._requests.parameters import ClientParameters, EstimateParameters
from llm_provider._requests.signatures import document
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
    assert "temperature: 'float | None' = None" in text
    assert "temperature: Randomness of the answer, from 0 to 2." in text
    assert "draw: The number of the first sample, from 0. `draw=3` is the fourth sample" in text
    assert "temperature: Randomness" in str(llm_provider.call.__doc__)


def test_without_source_names_and_types_remain(run_script: RunScript) -> None:
    program = """
        import inspect, pydoc, typing
        inspect.getsource = lambda module: (_ for _ in ()).throw(OSError("no source"))
        import llm_provider
        text = pydoc.render_doc(llm_provider.call, renderer=pydoc.plaintext)
        assert "temperature: 'float | None' = None" in text
        assert "**parameters: See `Parameters`." in text
        assert llm_provider.call_many.__annotations__.keys() >= {"model", "parameters"}
    """
    run_script(program)


def test_types_of_a_function_can_be_read() -> None:
    hints = typing.get_type_hints(llm_provider.call)
    assert (hints["model"], hints["return"]) == (str, Response)
    assert typing.get_type_hints(llm_provider.submit_many)["return"] is llm_provider.Batch
    assert typing.get_type_hints(Client.__init__)["parameters"] == typing.Unpack[ClientParameters]


def test_a_signature_can_be_bound_changed_and_copied() -> None:
    signature = inspect.signature(llm_provider.call)
    assert signature.bind("m", "x", temperature=0).arguments["temperature"] == 0
    with pytest.raises(TypeError):
        signature.bind("m", "x", temprature=0)
    assert signature.replace(return_annotation=int).return_annotation is int
    assert copy.copy(signature) == signature == copy.deepcopy(signature)
    with Client() as client:
        assert next(iter(inspect.signature(client.call).parameters)) == "model"


def test_a_docstring_without_an_entry_gets_one() -> None:
    assert "\n\n    Args:\n        temperature: " not in str(
        document("Asks.", "BatchParameters", "parameters")
    )
    plain = document("Asks.", "Parameters", "parameters")
    assert "Asks.\n\n    Args:\n        system: A system prompt" in str(plain)
    marked = "Asks.\n\n    Args:\n        **given: See `EmbedParameters`.\n    "
    text = str(document(marked, "EmbedParameters", "given"))
    assert text.startswith("Asks.\n\n    Args:\n        dimensions: ")
    assert str(pickle.loads(pickle.dumps(plain))) == str(plain)


@pytest.mark.parametrize("source", ["call('m', 'x', temp", "Client(temp"])
def test_jedi_completes_them_in_a_notebook(source: str) -> None:
    """In a real kernel: tests/end_to_end/test_notebook.py."""
    jedi = pytest.importorskip("jedi")
    names = {"call": llm_provider.call, "Client": Client}
    assert "temperature=" in [completion.name for completion in jedi.Interpreter(source, [names]).complete()]
