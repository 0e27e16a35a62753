"""Names of other libraries get the parameter to write instead."""

import csv
import inspect
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest
from google import genai
from google.genai.types import GenerateContentConfig

from llm_provider._core.requests.parameter_table import CHECKS
from llm_provider._core.requests.parameters import BatchParameters
from llm_provider._core.requests.routing import ROUTES, resolve
from llm_provider._features.foreign.remedies import describe_unexpected, problem_with, remedies_of


def test_embeddings_have_fewer_parameters() -> None:
    assert "write base_url=" in describe_unexpected("embed", "api_base", ["base_url"])
    assert "write" not in describe_unexpected("embed", "max_output_tokens", ["base_url"])
    assert "write" not in describe_unexpected("embed", "stream", ["base_url"])


_PAGE = Path(__file__).parents[3] / "tools" / "request_fields.csv"
_ROWS = list(csv.DictReader(_PAGE.read_text(encoding="utf-8").splitlines()))
_OPENAI = openai.OpenAI(api_key="k")
_ANTHROPIC = anthropic.Anthropic(api_key="k")
_CLIENTS = (
    openai.OpenAI, openai.AzureOpenAI, anthropic.Anthropic, anthropic.AnthropicBedrock,
    anthropic.AnthropicVertex, genai.Client,
)  # fmt: skip
_NOT_DONE_HERE = {
    "admin_api_key", "workload_identity", "data_residency", "websocket_base_url", "profile", "middleware",
    "open_telemetry", "webhook_secret", "webhook_key", "debug_config", "include",
}  # fmt: skip
"""What an SDK's clients and calls have for something that this library does not do, or does by itself."""


def _names_of(*functions: Any) -> set[str]:
    return {name for function in functions for name in inspect.signature(function).parameters}


_OF_CALLS = _names_of(_OPENAI.chat.completions.create, _OPENAI.responses.create, _ANTHROPIC.messages.create)
_IN_BODY = {row["field"] for row in _ROWS if "extra_body" in row["instead"] or row["field"] == "mime_type"}


@pytest.mark.parametrize(
    ("function", "name"),
    sorted(
        {("Client", name) for name in _names_of(*_CLIENTS)}
        | {("call", name) for name in _OF_CALLS | GenerateContentConfig.model_fields.keys()}
        | {("embed" if "embed" in row["api"] else "call", row["field"]) for row in _ROWS}
    ),
)
def test_what_the_sdks_take_has_a_hint_of_its_own(function: str, name: str) -> None:
    if name in CHECKS or name in _NOT_DONE_HERE or name.startswith("_"):
        return
    is_general = "goes into extra_body=)" in describe_unexpected(function, name, CHECKS)
    assert not is_general or (function != "Client" and name in _IN_BODY)


def test_no_parameter_is_taken_for_a_foreign_one() -> None:
    assert not remedies_of("call").keys() & BatchParameters.__annotations__.keys()


def test_servers_that_litellm_knows_go_through_litellm() -> None:
    assert problem_with("ollama/llama3", {"openai": ()}) is None
    assert resolve("ollama/llama3").provider == "litellm"


def test_litellm_knows_none_of_them() -> None:
    litellm = pytest.importorskip("litellm")
    known = {str(getattr(provider, "value", provider)) for provider in litellm.provider_list}
    assert not known & {name for route in ROUTES.values() for name in route.other_names}


@pytest.mark.parametrize("region", ["", "us.", "eu.", "global."])
@pytest.mark.parametrize("maker", ["anthropic", "amazon", "openai"])
def test_a_name_of_bedrock_gets_its_prefix(region: str, maker: str) -> None:
    assert problem_with(f"{region}{maker}.x-v1:0", {}) == f"model: write 'bedrock/{region}{maker}.x-v1:0'"
