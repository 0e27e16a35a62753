"""Imports that meet another thread's import of the same modules, and imports of what may be missing."""

import importlib
import signal
import sys
from pathlib import Path

import pytest

from llm_provider import MissingDependencyError
from llm_provider._core.runtime.imports import import_optional, is_unfinished, when_imported
from llm_provider.simulator import Simulator
from loop_support import run_threads
from support import RunScript

MODULES = {
    # Each imports the other one after a moment, so two threads that begin at once wait for each other.
    "first_half": "import time\ntime.sleep(0.3)\nfrom second_half import there\nhere = 1\n",
    "second_half": "import time\ntime.sleep(0.3)\nimport first_half\nthere = 2\n",
}


@pytest.fixture
def halves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in MODULES.items():
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    for name in MODULES:
        sys.modules.pop(name, None)


@pytest.mark.usefixtures("halves")
def test_two_threads_that_import_each_others_modules_both_succeed() -> None:
    results: list[object] = []

    def take(name: str, value: str) -> None:
        results.append(when_imported(lambda: getattr(importlib.import_module(name), value)))

    run_threads(lambda: take("first_half", "here"), lambda: take("second_half", "there"))
    assert sorted(results) == [1, 2]  # type: ignore[type-var]  # the items are numbers


def test_other_failures_are_raised_at_once() -> None:
    tries: list[int] = []

    def broken() -> None:
        tries.append(1)
        raise ImportError("no module named x")

    with pytest.raises(MissingDependencyError, match="ImportError: no module named x") as caught:
        when_imported(broken)
    assert isinstance(caught.value.__cause__, ImportError)
    assert len(tries) == 1


def test_python_says_so_of_a_submodule_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "a_package"
    package.mkdir()
    (package / "__init__.py").write_text("from a_package import one\n")
    # Nothing has imported the end of `one` yet, so `a_package` does not have it as an attribute.
    (package / "one.py").write_text(
        "import a_package\na_package.__spec__._initializing = False\na_package.one\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(AttributeError, match="cannot access submodule") as caught:
        importlib.import_module("a_package")
    assert is_unfinished(caught.value)


def test_a_cause_is_looked_through() -> None:
    error = RuntimeError("the SDK failed")
    assert not is_unfinished(error)
    error.__cause__ = ImportError("cannot import name 'a' from partially initialized module 'b'")
    assert is_unfinished(error)
    error.__cause__ = error
    assert not is_unfinished(error)


def test_an_installed_package_is_imported_and_a_missing_one_is_named() -> None:
    assert import_optional("json.decoder", "nothing") is sys.modules["json.decoder"]
    with pytest.raises(MissingDependencyError, match="nosuchpackage is not installed: pip install its-name"):
        import_optional("nosuchpackage.part", "pip install its-name")


def test_a_missing_sdk_is_named_with_the_command(simulator: Simulator, run_script: RunScript) -> None:
    done = run_script("""
        import sys
        from llm_provider import Client, MissingDependencyError

        models = {"openai": "gpt-6.1-sol", "anthropic": "claude-opus-5-5", "google.genai": "gemini-4-argon"}
        with Client(cache="off") as client:
            for package, model in models.items():
                # Python refuses to import a module that is None here, as if it were not installed.
                sys.modules[package] = None
                (result,) = client.call_many(model, ["Hi"])
                try:
                    client.call(model, "Hi")
                except MissingDependencyError as error:
                    print(package in str(error), str(error) == str(result))
                    print(str(error).partition(": ")[2])
    """)
    said = done.stdout.splitlines()
    assert said[::2] == ["True True"] * 3
    assert {line.partition(" installs")[0] for line in said[1::2]} == {"pip install llm-provider-call"}
    assert simulator.requests() == []


# Each package is imported in one place, whatever the error is.
@pytest.mark.parametrize(
    ("error", "package"),
    [("OSError", "aiohttp"), ("OSError", "openai"), ("ImportError", "openai"), ("AttributeError", "openai")],
)
def test_a_package_that_cannot_be_loaded_costs_no_other_answer(
    simulator: Simulator, run_script: RunScript, tmp_path: Path, package: str, error: str
) -> None:
    """Such as one for another architecture, or one that does not fit another package."""
    (tmp_path / f"{package}.py").write_text(f"raise {error}('libssl.so.3 is missing')")
    done = run_script(f"""
        import asyncio, sys
        sys.path.insert(0, {str(tmp_path)!r})
        from llm_provider import Client, MissingDependencyError

        ways = {{
            "call": lambda: client.call("gpt-6.1-sol", "Hi"),
            "acall": lambda: asyncio.run(client.acall("gpt-6.1-sol", "Hi")),
            "stream": lambda: list(client.stream("gpt-6.1-sol", "Hi")),
            "embed": lambda: client.embed("text-embedding-3-small", ["Hi"]),
        }}
        with Client(cache="off") as client:
            print(type(client.call_many("gpt-6.1-sol", ["Hi"], progress=False)[0]).__name__)
            for way in ways.values():
                try:
                    way()
                except MissingDependencyError as error:
                    print(type(error).__name__, "libssl.so.3" in str(error))
    """)
    one_of_batch, *others = done.stdout.splitlines()
    assert one_of_batch == "MissingDependencyError"
    assert others == ["MissingDependencyError True"] * 4
    assert simulator.requests() == []


INTERRUPTED = """
    import os, signal, sys

    coming = {modules!r}

    def interrupt(event, arguments):
        if event == "import" and coming and coming[0] in ("*", arguments[0]):
            if len(coming) == 1:
                os.kill(os.getpid(), signal.SIGINT)
            coming.pop(0)

    sys.addaudithook(interrupt)
    try:
        from llm_provider import call

        call({model!r}, "one two")
    except KeyboardInterrupt:
        print("interrupted")
    from llm_provider import call

    print(call({model!r}, "one two").text)
"""


@pytest.mark.parametrize(
    ("model", "modules"),
    [
        # What the extension of orjson imports.
        ("gpt-6.1-sol", ["orjson.orjson", "*"]),
        ("gpt-6.1-sol", ["openai._client"]),
        pytest.param("claude-sonnet-5-5", ["anthropic._client"], marks=pytest.mark.long),
        pytest.param("gemini/gemini-4-argon", ["google.genai.client"], marks=pytest.mark.long),
    ],
)
def test_an_interrupt_within_an_import_ends_the_call_after_it(
    simulator: Simulator, run_script: RunScript, model: str, modules: list[str]
) -> None:
    done = run_script(INTERRUPTED.format(model=model, modules=modules))
    assert (done.stdout, done.stderr, done.returncode) == ("interrupted\necho: one two\n", "", 0)


def test_ctrl_c_in_a_swallowing_import_is_not_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "swallowing.py").write_text(
        "import os, signal\n"
        "try:\n    os.kill(os.getpid(), signal.SIGINT)\nexcept BaseException:\n    pass\n"
        "whole = True\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        when_imported(lambda: importlib.import_module("swallowing"))
    assert sys.modules.pop("swallowing").whole
    assert signal.getsignal(signal.SIGINT) is before
