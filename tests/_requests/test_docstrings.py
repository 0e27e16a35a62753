"""Docstrings in every style, with a description and without one."""

import pytest

from llm_provider._requests.docstrings import read_docstring

SECTIONS = [
    *(
        f"{title}:\n{{}}city: Its name.\n{{}}days (int): How many."
        for title in ("Args", "Arguments", "Parameters")
    ),
    "Parameters\n----------\ncity : str\n{}Its name.\ndays : int, optional\n{}How many.",
    ":param city: Its name.\n:param days: How many.",
]


@pytest.mark.parametrize("section", SECTIONS)
@pytest.mark.parametrize("returns", ["", "\n\n{}Returns:\n{}    A sentence.\n"])
@pytest.mark.parametrize("begins", ["", "\n{}"], ids=["at the quotes", "on a line of its own"])
@pytest.mark.parametrize("ends", ["", "\n{}"])
def test_a_docstring_may_have_its_parameters_alone(
    section: str, returns: str, begins: str, ends: str
) -> None:
    def function(city: str, days: int = 1) -> None: ...

    if returns and not section.startswith(("Args", "Arguments")):
        returns = ""
    lines = section.replace("{}", "    ").replace("\n", "\n    ")
    function.__doc__ = (begins + lines + returns + ends).replace("{}", "    ")
    assert read_docstring(function) == ("", {"city": "Its name.", "days": "How many."})
