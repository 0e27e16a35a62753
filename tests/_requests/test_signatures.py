"""Every parameter can be found: by `help`, `inspect`, editors, IPython and type checkers."""

from __future__ import annotations

import copy
import inspect
import pydoc
from typing import Any

import pytest

import llm_provider
from end_to_end.stubs import PACKAGE, STUBBED, first_sentence, stub, written
from llm_provider import BatchParameters, Client, EmbedParameters, Parameters
from llm_provider._requests.parameters import Defaults
from llm_provider._requests.signatures import documented

TAKEN: dict[str, Any] = {
    **dict.fromkeys(["call", "acall", "stream", "astream", "count_tokens", "acount_tokens"], Parameters),
    **dict.fromkeys(["call_many", "acall_many", "iter_many", "aiter_many", "estimate"], BatchParameters),
    **dict.fromkeys(["embed", "aembed"], EmbedParameters),
}


def test_the_stubs_are_current() -> None:
    """`make stubs` writes them."""
    for path, text in written().items():
        assert path.read_text(encoding="utf-8") == text, path


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


def test_a_client_names_its_defaults_and_options() -> None:
    assert Defaults.__annotations__.keys() <= inspect.signature(Client).parameters.keys()
    assert Parameters.__annotations__.keys() <= inspect.signature(Client.with_options).parameters.keys()
    assert "\n    temperature: Randomness" in (inspect.getdoc(Client) or "")


def test_help_explains_them() -> None:
    text = pydoc.render_doc(llm_provider.call, renderer=pydoc.plaintext)
    assert "temperature: 'float | None' = None" in text
    assert "temperature: Randomness of the answer, from 0 to 2." in text


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
    assert "\n\n    Args:\n        temperature: " not in documented("Asks.", "BatchParameters", "parameters")
    assert "Asks.\n\n    Args:\n        system: A system prompt" in documented(
        "Asks.", "Parameters", "parameters"
    )
    marked = "Asks.\n\n    Args:\n        **given: See `EmbedParameters`.\n    "
    assert documented(marked, "EmbedParameters", "given").startswith(
        "Asks.\n\n    Args:\n        dimensions: "
    )


def test_a_stub_has_overloads_and_no_implementation() -> None:
    text = stub("_client/functions")
    assert text.count("def embed(") == 2
    # Batches return or raise errors for one model or several, and `wait=False` returns a `Batch`.
    typed = ["call", "acall", "stream", "astream", "iter_many", "aiter_many"]
    assert [text.count(f"def {name}(") for name in typed] == [2] * len(typed)
    assert text.count("def call_many(") == text.count("def acall_many(") == 11
    assert text.count("response_format: TypeForm[T],") == len(typed) + 8
    assert "temperature: float | None = None," in text
    assert "seal" not in text


def test_the_first_sentence_ends_at_a_full_stop() -> None:
    assert first_sentence("Up to 0.5,\n    e.g. now. More.") == "Up to 0.5, e.g. now."


class TestEditors:
    """Jedi completes in editors and, through IPython, in notebooks."""

    jedi = pytest.importorskip("jedi")

    @pytest.mark.parametrize(
        ("source", "expected"),
        [
            ("from llm_provider import call\ncall('m', 'x', temp", "temperature="),
            ("from llm_provider import embed\nembed('m', [], dimen", "dimensions="),
            ("from llm_provider import Client\nClient(temp", "temperature="),
        ],
    )
    def test_from_the_text_of_a_program(self, source: str, expected: str) -> None:
        project = self.jedi.Project(PACKAGE.parent, added_sys_path=[str(PACKAGE.parent)])
        script = self.jedi.Script(source, path=PACKAGE.parent / "program.py", project=project)
        assert expected in [found.name for found in script.complete()]

    def test_from_the_text_they_are_explained(self) -> None:
        project = self.jedi.Project(PACKAGE.parent, added_sys_path=[str(PACKAGE.parent)])
        source = "from llm_provider import call\ncall("
        script = self.jedi.Script(source, path=PACKAGE.parent / "p.py", project=project)
        for signature in script.get_signatures():
            assert "temperature: Randomness of the answer" in signature.docstring()
            assert {"temperature", "service_tier"} <= {parameter.name for parameter in signature.params}

    def test_from_the_objects_of_a_notebook(self) -> None:
        names = {"call": llm_provider.call, "Client": Client}
        for source in ("call('m', 'x', temp", "Client(temp"):
            found = self.jedi.Interpreter(source, [names]).complete()
            assert "temperature=" in [one.name for one in found]


def test_every_stubbed_module_has_its_stub() -> None:
    stubs = {path.relative_to(PACKAGE).with_suffix("").as_posix() for path in PACKAGE.rglob("*.pyi")}
    assert stubs == set(STUBBED)
