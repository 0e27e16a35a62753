"""Providers whose batches are not served."""

from typing import Any

import pytest

from llm_provider import Client, RequestError
from llm_provider._core.requests.routing import ROUTES
from llm_provider._features.batch_hosts.refusals import NOT_SERVED, SETUP
from llm_provider.simulator import Simulator


@pytest.mark.parametrize(
    ("model", "missing"),
    [
        ("vertex_ai/gemini-3.8-flash", "set VERTEX_BATCH_BUCKET='gs://bucket/folder'"),
        ("vertex_ai/claude-sonnet-5-5", "set VERTEX_BATCH_BUCKET='gs://bucket/folder'"),
        ("vertex_ai/gemini-embedding-001", "Vertex's batches of embeddings are not served"),
        ("bedrock/anthropic.claude-haiku-4-5-20251001-v1:0", "set BEDROCK_BATCH_BUCKET='s3://bucket/folder'"),
        ("bedrock_mantle/openai.gpt-oss-120b", "Mantle's models have no batches here"),
        ("azure_ai/claude-sonnet-5-5", "Foundry has no batches for Claude"),
        ("deepseek/deepseek-chat", "deepseek has no batch API"),
    ],
)
@pytest.mark.parametrize("way", ["call_many", "iter_many", "submit_many"])
def test_a_provider_that_is_not_served_says_what_is_missing(
    client: Client, clouds_places: None, model: str, missing: str, way: str
) -> None:
    options: dict[str, Any] = {} if way == "submit_many" else {"delivery": "batch"}
    with pytest.raises(RequestError, match=missing) as caught:
        results: Any = getattr(client, way)(model, ["Hi"], **options)
        list(results)
    assert "delivery='live'" in caught.value.message


@pytest.fixture
def clouds_places(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the clouds are. Nothing is sent there."""
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "mine")
    monkeypatch.setenv("ANTHROPIC_FOUNDRY_RESOURCE", "mine")


def test_the_providers_are_those_of_the_table_and_nothing_is_sent(simulator: Simulator) -> None:
    assert NOT_SERVED.keys() | SETUP.keys() <= ROUTES.keys()
    assert simulator.requests() == []
