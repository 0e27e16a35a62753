"""What importing costs users. `end_to_end/test_site.py` compares the public names with the reference."""

import importlib.metadata
import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest

import llm_provider
from llm_provider import Client, LLMError
from llm_provider._core import errors as _errors
from llm_provider.simulator import Simulator
from support import RunScript

# What has another form on a client: a property there, or nothing, as it sums what all clients do.
MODULE_FUNCTIONS = {"track", "usage", "verify"} | {
    # They make questions or name servers, or work on numbers.
    "brier_score", "choice", "cohen_kappa", "compare", "mcp", "predicate", "reliability", "score_levels",
}  # fmt: skip
FUNCTIONS = sorted(
    name
    for name in {*llm_provider.__all__} - MODULE_FUNCTIONS
    if inspect.isfunction(getattr(llm_provider, name))
)
TYPES = {"FinishReason", "Message", "Prompt"}

SDKS = {"anthropic", "google.genai", "litellm", "openai"}
HEAVY = SDKS | {"aiohttp", "diskcache", "httpx", "httpx2", "platformdirs", "pydantic", "tqdm"}


def test_names_that_are_loaded_on_first_use_behave_like_any_other() -> None:
    assert set(llm_provider.__all__) <= set(dir(llm_provider))
    for name in llm_provider.__all__:
        assert getattr(llm_provider, name) is getattr(llm_provider, name)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = llm_provider.nothing  # type: ignore[attr-defined]  # on purpose


def test_every_error_is_exported() -> None:
    defined = {
        name
        for name, value in vars(_errors).items()
        if inspect.isclass(value) and issubclass(value, Exception) and value.__module__ == _errors.__name__
    }
    assert defined <= set(llm_provider.__all__)
    assert all(issubclass(getattr(llm_provider, name), LLMError) for name in defined)


def test_the_version_is_that_of_the_distribution() -> None:
    assert llm_provider.__version__ == importlib.metadata.version("llm-provider-call")


@pytest.mark.parametrize("name", sorted({*llm_provider.__all__} - TYPES))
def test_public_names_are_documented(name: str) -> None:
    documented = getattr(llm_provider, name)
    assert inspect.getdoc(documented)
    if inspect.isclass(documented):
        members = {
            member: value
            for member, value in vars(documented).items()
            if not member.startswith("_") and (inspect.isfunction(value) or isinstance(value, property))
        }
        assert {member for member, value in members.items() if not value.__doc__} == set()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_methods_of_the_client_too(name: str) -> None:
    function = inspect.signature(getattr(llm_provider, name))
    method = inspect.signature(getattr(Client, name))
    assert list(method.parameters.values())[1:] == list(function.parameters.values())
    assert method.return_annotation == function.return_annotation


def loaded_after(program: str, folder: Path) -> set[str]:
    """Which heavy packages a fresh interpreter holds after running a program."""
    report = f"import sys; print(*(name for name in {sorted(HEAVY)!r} if name in sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", f"{program}\n{report}"],
        cwd=folder,
        env={**os.environ, "PYTHONWARNINGS": "error"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return set(done.stdout.split())


def test_importing_loads_no_sdk_and_no_transport(tmp_path: Path) -> None:
    assert loaded_after("import llm_provider", tmp_path) == set()


def test_a_cache_hit_loads_no_sdk_and_needs_no_key(tmp_path: Path) -> None:
    servers = {"gpt-6.1-sol": "openai", "claude-sonnet-5-5": "anthropic", "gemini-3.8-flash": "gemini"}
    with Simulator() as simulator:
        models = {model: simulator.url(server) for model, server in servers.items()}
        for model, url in models.items():
            assert not llm_provider.call(model, "What is 2+2?", base_url=url, api_key="k").cached
    # The server is gone by now.
    program = f"""
from llm_provider import call
for model, url in {models!r}.items():
    answer = call(model, "What is 2+2?", base_url=url)
    assert (answer.text, answer.cached) == ("4", True)
"""
    assert loaded_after(f"import tqdm\n{program}", tmp_path) - {"diskcache", "platformdirs"} == {"tqdm"}


def test_the_other_distribution_of_this_name_is_named_once(tmp_path: Path, run_script: RunScript) -> None:
    packages = tmp_path / "site-packages"
    (packages / "llm_provider-1.0.0.dist-info").mkdir(parents=True)
    (packages / "llm_provider_call-0.1.0.dist-info").mkdir()
    program = f"""
        import sys, warnings
        warnings.simplefilter("default")
        sys.path.append({str(packages)!r})
        import llm_provider
        import llm_provider._core.client.functions
    """
    written = run_script(program).stderr
    assert written.count("Warning") == 1
    assert "pip uninstall llm-provider" in written
    (packages / "llm_provider-1.0.0.dist-info").rmdir()
    assert run_script(program).stderr == ""
