"""The examples in the docstrings of every module run."""

import doctest
import importlib
import importlib.util
import pkgutil
from pathlib import Path

import pytest

import llm_provider
import tools
from llm_provider.simulator import Simulator

# Each needs its package, and `make test-plugins` runs its tests.
NEEDS_A_PACKAGE = {f"llm_provider.integrations.{name}" for name in ("inspect_ai", "dspy", "llm")}
# A `__main__` is a program: importing it runs it.
MODULES = [
    "llm_provider",
    *(
        module.name
        for package in (llm_provider, tools)
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
        if not module.name.endswith(".__main__") and module.name not in NEEDS_A_PACKAGE
    ),
]
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def has_examples(name: str) -> bool:
    """Whether the source of a module has examples. It is not imported, because some import an SDK."""
    spec = importlib.util.find_spec(name)
    assert spec is not None
    assert spec.origin is not None
    return ">>> " in Path(spec.origin).read_text(encoding="utf-8")


WITH_EXAMPLES = [name for name in MODULES if has_examples(name)]


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_examples_of(name: str, simulator: Simulator) -> None:
    """A call that an example makes goes to the simulator."""
    assert doctest.testmod(importlib.import_module(name), optionflags=OPTIONS).failed == 0


def test_there_are_examples_to_run() -> None:
    assert len(WITH_EXAMPLES) >= 100
