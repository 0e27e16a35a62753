"""What users may import, and what importing it costs them."""

import importlib.metadata
import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest

import llm_provider
from llm_provider import Client, LLMError, Parameters, _errors
from llm_provider.simulator import Simulator
from support import RunScript

FUNCTIONS = [
    "acall", "acall_many", "acount_tokens", "aembed", "aestimate", "aiter_many", "ascore", "astream",
    "asubmit_many", "batches", "call", "call_many", "count_tokens", "embed", "estimate", "iter_many",
    "models", "price", "recheck", "score", "score_many", "stream", "submit_many",
]  # fmt: skip
# What has another form on a client: a property there, or nothing, as it sums what all clients do.
MODULE_FUNCTIONS = ["track", "usage", "verify"]
ERRORS = [
    "AuthenticationError", "BadRequestError", "APIResponseValidationError", "BatchError",
    "BudgetExceededError", "CacheMissError", "APIConnectionError", "ContextWindowExceededError",
    "EvidenceError", "LLMError", "MissingAPIKeyError",
    "MissingDependencyError", "ModelDriftError", "NotFoundError",
    "OutputError", "OverloadedError", "PendingBatchError", "PermissionDeniedError", "ProviderError",
    "QuotaExceededError", "RateLimitError", "RefusalError", "RequestError", "JSONSchemaValidationError",
    "SchemaMismatchError", "ScoreCheckError", "InternalServerError", "APITimeoutError",
    "LengthFinishReasonError", "ToolArgumentsError", "ToolRoundsExceededError", "UncertainBatchError",
    "UnknownModelError", "UnknownPriceError", "UnsupportedParameterError",
]  # fmt: skip
CLASSES = [
    "AskedCall", "AsyncStream", "Batch", "BatchCounts", "Budget", "CacheWarning", "Choice", "Citation",
    "Client", "Content", "Cost", "Delta", "EmbedParameters", "Embeddings", "Estimate", "Estimates",
    "FailedAttempt", "GeneratedAudio", "GeneratedImage", "Host", "KeyWarning", "Ledger", "LedgerRow",
    "LedgerWarning", "Model", "PassedOver", "TokenCount", "TokenLogprob", "ModelDriftWarning",
    "PriceWarning", "Range", "CacheStatistics", "Evidence", "Explanation", "Recheck", "Response",
    "Results", "ScopeStatistics", "Score", "ScoreParameters", "Scores", "SecondLevel",
    "SecondLevelStatistics", "SecondLevelStore", "ServedBy", "ServerToolCall", "SharedControllerWarning",
    "Stream", "Telemetry", "Timeouts", "Timing", "ToolCall", "ToolCallDelta", "ToolResult",
    "UnpinnedRouterWarning", "Usage",
]  # fmt: skip
TYPES = ["BatchParameters", "FinishReason", "Message", "Parameters", "Prompt"]
EXPORTED = sorted([*FUNCTIONS, *MODULE_FUNCTIONS, *ERRORS, *CLASSES, *TYPES])

PARAMETERS = [
    "allowed_tools", "api_key", "base_url", "budget", "cache", "cached_content", "deadline", "draw",
    "endpoint", "extra_body", "extra_headers", "fallback", "frequency_penalty", "in_batch", "logit_bias",
    "logprobs", "max_repairs", "max_retries", "max_tokens", "max_tool_rounds", "metadata", "modalities",
    "n", "outage_patience", "parallel_tool_calls", "presence_penalty", "previous_response_id",
    "prompt_cache_key", "prompt_caching", "reasoning_context", "reasoning_effort", "reasoning_summary",
    "response_format", "safety_settings", "seed", "service_tier", "stop", "store", "strict_model",
    "system", "temperature", "thinking_budget", "timeout", "tool_choice", "tools", "top_k",
    "top_logprobs", "top_p", "unsupported", "upstream", "user", "verbosity",
]  # fmt: skip

SDKS = {"anthropic", "google.genai", "litellm", "openai"}
HEAVY = SDKS | {"aiohttp", "diskcache", "httpx", "httpx2", "platformdirs", "pydantic", "tqdm"}


def test_the_exported_names_are_these() -> None:
    assert llm_provider.__all__ == EXPORTED


def test_names_that_are_loaded_on_first_use_behave_like_any_other() -> None:
    assert set(EXPORTED) <= set(dir(llm_provider))
    for name in EXPORTED:
        assert getattr(llm_provider, name) is getattr(llm_provider, name)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = llm_provider.nothing  # type: ignore[attr-defined]  # on purpose


def test_every_error_is_exported() -> None:
    defined = {
        name
        for name, value in vars(_errors).items()
        if inspect.isclass(value) and issubclass(value, Exception) and value.__module__ == _errors.__name__
    }
    assert defined == set(ERRORS)
    assert all(issubclass(getattr(llm_provider, name), LLMError) for name in ERRORS)


def test_the_parameters_are_these() -> None:
    assert sorted(Parameters.__annotations__) == PARAMETERS


def test_the_version_is_that_of_the_distribution() -> None:
    assert llm_provider.__version__ == importlib.metadata.version("llm-provider-call")


@pytest.mark.parametrize(
    "name", [*FUNCTIONS, *MODULE_FUNCTIONS, *ERRORS, *CLASSES, "BatchParameters", "Parameters"]
)
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
        import llm_provider._client.functions
    """
    written = run_script(program).stderr
    assert written.count("Warning") == 1
    assert "pip uninstall llm-provider" in written
    (packages / "llm_provider-1.0.0.dist-info").rmdir()
    assert run_script(program).stderr == ""
