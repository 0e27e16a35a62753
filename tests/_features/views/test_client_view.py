"""A client in words, and the traceback of an error, in a notebook."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from llm_provider import BadRequestError, Client, LLMError
from llm_provider._core.requests.parameters import ClientSettings, Defaults
from llm_provider._features.views.client_view import _OPEN, render_traceback
from llm_provider.simulator import Fault, Simulator

SECRET = "sk-secret-1234567890"


def test_a_client_says_what_it_is(simulator: Simulator, tmp_path: Path) -> None:
    with Client(
        cache_dir=tmp_path, max_concurrent=8, budget=2.5, max_tokens=50, system="Be brief."
    ) as client:
        client.call("gpt-6.1-sol", "1+1?")
        client.call("gpt-6.1-sol", "1+1?")
        text, html = repr(client), client._repr_html_()
    assert text.startswith("Client(")
    for fact in (f"cache_dir={str(tmp_path)!r}", "max_concurrent=8", "budget=2.5", "max_tokens=50"):
        assert fact in text
    assert "system=..." in text
    assert "1 requests, 1 hits, $0.0" in text
    assert "max_concurrent=8" in html
    assert "gpt-6.1-sol" in html


@pytest.mark.parametrize(
    "settings",
    [
        {"keys": {"openai": SECRET}},
        {"api_key": SECRET},
        {"extra_headers": {"x-own": SECRET}},
        {"extra_body": {"key": SECRET}},
        {"cache": f"valkey://user:{SECRET}@127.0.0.1:6379/0"},
        {"metadata": {"key": SECRET}},
    ],
)
def test_a_client_shows_no_secret(settings: Any) -> None:
    pytest.importorskip("valkey")
    client = Client(**settings)
    assert SECRET not in repr(client) + client._repr_html_()
    assert f"{next(iter(settings))}=..." in repr(client)


def test_only_known_names_have_values() -> None:
    assert {*ClientSettings.__annotations__, *Defaults.__annotations__} >= _OPEN


def test_a_traceback_is_short_and_names_the_cause(client: Client, simulator: Simulator) -> None:
    simulator.inject(Fault(status=400), match="fails")

    def ask_in_a_cell() -> None:
        client.call("gpt-6.1-sol", "it fails")

    with pytest.raises(BadRequestError) as caught:
        ask_in_a_cell()
    lines = render_traceback(caught.value)
    assert "in ask_in_a_cell" in "".join(lines)
    assert sum("File " in line for line in lines) == 2
    assert lines[-1] == f"BadRequestError: {caught.value}"
    assert "llm_provider/_core" not in "".join(lines)
    error: LLMError = BadRequestError("x")
    error.__cause__ = ValueError("\x1b[31m" + "long " * 1000)
    *_, cause = error._render_traceback_()
    assert cause.startswith("  caused by ValueError: ")
    assert "\x1b" not in cause
    assert len(cause) < 300


def test_ipython_shows_it(warm_python: list[str]) -> None:
    """IPython finds the method by its name."""
    pytest.importorskip("IPython")
    code = (
        "from IPython.core.interactiveshell import InteractiveShell\n"
        "shell = InteractiveShell.instance()\n"
        'shell.run_cell(\'import llm_provider; llm_provider.call("gpt-6.1-sol", "", max_tokens=-1)\')\n'
        "shell.run_line_magic('xmode', 'Verbose')\n"
        "shell.run_line_magic('tb', '')\n"
    )
    ended = subprocess.run([*warm_python, "-c", code], capture_output=True, text=True, check=True)
    short, _, full = ended.stdout.partition("Exception reporting mode: Verbose")
    assert "frames of installed packages; %xmode Verbose and %tb show them" in short
    assert "parameter_table" not in short
    assert len(full) > 3 * len(short)
