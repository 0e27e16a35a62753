"""Clouds without their keys: real chains of identities, whose sources are on this machine."""

import asyncio
import calendar
import time
import traceback
from collections.abc import Iterator
from email.utils import formatdate
from pathlib import Path
from typing import Any

import orjson
import pytest

from cloud_support import FakeCloud, signature_of
from llm_provider import (
    AuthenticationError,
    Budget,
    BudgetExceededError,
    Client,
    ContextWindowExceededError,
    LLMError,
    MissingAPIKeyError,
    RequestError,
)
from llm_provider._core.pace.failure_table import GATEWAY_FAILURE
from llm_provider._core.requests.routing import find_key, resolve
from llm_provider._features.clouds import identities as cloud_identities
from llm_provider.simulator import Fault, Simulator
from support import RunScript

CLAUDE, GEMINI = "claude-opus-5-5", "gemini-3.8-flash"
VERTEX = "/vertex_ai/v1/projects/project/locations/global/publishers"
PATHS = {
    "azure/gpt-6.1-sol": "/azure/openai/v1/chat/completions",
    f"azure_ai/{CLAUDE}": "/azure_ai/anthropic/v1/messages",
    f"bedrock_mantle/anthropic.{CLAUDE}": "/bedrock_mantle/anthropic/v1/messages",
    "bedrock_mantle/openai.gpt-6.1-sol": "/bedrock_mantle/openai/v1/chat/completions",
    "bedrock_mantle/openai.gpt-oss-120b": "/bedrock_mantle/v1/chat/completions",
    f"bedrock/us.anthropic.{CLAUDE}-v1:0": f"/bedrock/model/us.anthropic.{CLAUDE}-v1:0/invoke",
    f"vertex_ai/{CLAUDE}@default": f"{VERTEX}/anthropic/models/{CLAUDE}@default:rawPredict",
    f"vertex_ai/{GEMINI}": f"{VERTEX}/google/models/{GEMINI}:generateContent",
}
"""Model → the path that the SDK's platform client has for it."""


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeCloud]:
    cloud_identities._identity.cache_clear()
    with FakeCloud() as cloud:
        cloud.point(monkeypatch, tmp_path)
        yield cloud
    cloud_identities._identity.cache_clear()


@pytest.fixture
def clouds(cloud: FakeCloud, simulator: Simulator, monkeypatch: pytest.MonkeyPatch) -> Simulator:
    for variable in ("AZURE_OPENAI_API_KEY", "ANTHROPIC_FOUNDRY_API_KEY", "AWS_BEARER_TOKEN_BEDROCK"):
        monkeypatch.delenv(variable)
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "project")
    return simulator


@pytest.mark.parametrize("transport", ["aiohttp", "http1"])
@pytest.mark.parametrize("model", PATHS)
@pytest.mark.sampled(3)
def test_every_address_needs_no_key(model: str, transport: Any, clouds: Simulator, cloud: FakeCloud) -> None:
    with Client(cache="off", transport=transport) as client:
        assert client.call(model, "What is 2+3?").text == "5"
        with client.stream(model, "What is 20+12?") as deltas:
            assert "".join(delta.text for delta in deltas) == "32"
        counted = client.count_tokens(model, "Hi there")
        assert len({scope.key for scope in client.statistics()}) == 1
    assert clouds.requests()[0].path == PATHS[model]
    assert cloud.fetched == 1
    assert (counted.method == "provider") == ("claude" in model or "gemini" in model) - ("bedrock/" in model)


IDENTITIES = {
    "azure/gpt-6.1-sol": (Fault(status=401), "az login"),
    f"vertex_ai/{GEMINI}": (Fault(status=401), "gcloud auth application-default login"),
    f"bedrock/anthropic.{CLAUDE}": (
        Fault(status=403, message="The security token is expired: ExpiredToken"), "aws sso login"
    ),
}  # fmt: skip
"""Model → how its cloud refuses an old token, and how a user logs in."""


@pytest.mark.parametrize("model", IDENTITIES)
def test_a_refused_token_is_renewed_once(model: str, clouds: Simulator, cloud: FakeCloud) -> None:
    fault, _ = IDENTITIES[model]
    with Client(cache="off", max_retries=0) as client:
        clouds.inject(fault)
        assert client.call(model, "What is 2+3?").attempts == 1
        assert cloud.fetched == 2
        clouds.inject(fault, times=2)
        with pytest.raises(AuthenticationError if fault.status == 401 else LLMError) as caught:
            client.call(model, "Hi")
        assert cloud.fetched == 3
        assert not caught.value.retryable
        assert "token-" not in "".join(traceback.format_exception(caught.value)) + repr(vars(caught.value))


@pytest.mark.parametrize("model", IDENTITIES)
def test_a_missing_identity_ends_a_call_at_once(
    model: str, clouds: Simulator, cloud: FakeCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("IDENTITY_ENDPOINT", "AWS_CONTAINER_CREDENTIALS_FULL_URI", "GOOGLE_APPLICATION_CREDENTIALS"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    monkeypatch.setenv("AZURE_TOKEN_CREDENTIALS", "AzureCliCredential")
    monkeypatch.setenv("PATH", "/nowhere")
    with (
        Client(cache="off") as client,
        pytest.raises(MissingAPIKeyError, match=IDENTITIES[model][1]) as caught,
    ):
        client.call(model, "Hi")
    assert caught.value.cost == 0
    assert clouds.requests() == []


def check_signatures(cloud: FakeCloud) -> None:
    for post in cloud.posts:
        assert post[1]["authorization"].endswith(signature_of(post, cloud.address, "bedrock"))


@pytest.mark.parametrize("stream", [False, True])
def test_signatures_are_those_of_what_arrives(stream: bool, cloud: FakeCloud) -> None:
    model = f"us.anthropic.{CLAUDE}-v1:0"
    cloud.reply = {
        "id": "m", "type": "message", "role": "assistant", "model": CLAUDE, "stop_reason": "end_turn",
        "content": [{"type": "text", "text": "Yes"}], "usage": {"input_tokens": 1, "output_tokens": 1},
    }  # fmt: skip
    cloud.refused = [(429, {"x-amzn-errortype": "ThrottlingException:http://x/"}, {"message": "slow"})]
    with Client(cache="off", base_url=f"http://{cloud.address}") as client:
        answer = client.stream(f"bedrock/{model}", "Hé") if stream else client.call(f"bedrock/{model}", "Hé")
        assert not stream or list(answer)
    check_signatures(cloud)
    assert {post[1]["x-amz-security-token"] for post in cloud.posts} == {"session-token-1"}
    assert len(cloud.posts) == 2


@pytest.mark.parametrize(("ahead", "count"), [(3600.0, 2), (30.0, 1)])
def test_a_clock_that_is_wrong_by_minutes_is_corrected(ahead: float, count: int, cloud: FakeCloud) -> None:
    kind = {
        "x-amzn-errortype": "InvalidSignatureException",
        "Date": formatdate(time.time() + ahead, usegmt=True),
    }
    cloud.refused = [(403, kind, {"message": "Signature expired: it is too old"})] * count
    client = Client(cache="off", base_url=f"http://{cloud.address}", max_retries=0)
    with client, pytest.raises(AuthenticationError):
        client.call(f"bedrock/anthropic.{CLAUDE}", "Hi")
    moments = [
        calendar.timegm(time.strptime(post[1]["x-amz-date"], "%Y%m%dT%H%M%SZ")) for post in cloud.posts
    ]
    assert [round((moment - time.time()) / 3600) for moment in moments] == [0, 1][:count]
    check_signatures(cloud)


def test_the_region_is_that_of_the_profile_and_of_the_address(
    cloud: FakeCloud, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("AWS_REGION")
    model = f"bedrock/anthropic.{CLAUDE}"
    (tmp_path / "config").write_text("[default]\nregion = us-west-2\n[profile work]\nregion = eu-west-1\n")
    assert resolve(model).base_url == "https://bedrock-runtime.us-west-2.amazonaws.com"
    monkeypatch.setenv("AWS_PROFILE", "work")
    target = resolve(model)
    assert target.base_url == "https://bedrock-runtime.eu-west-1.amazonaws.com"
    other = resolve(model, "https://vpce-1.bedrock-runtime.us-east-2.vpce.amazonaws.com")
    assert find_key(target).identity == find_key(resolve(model)).identity != find_key(other).identity


def test_entras_audience_is_set(clouds: Simulator, cloud: FakeCloud, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_SCOPE", "https://ai.example/.default")
    with Client(cache="off") as client:
        client.call("azure/gpt-6.1-sol", "Hi")
        assert cloud.path.endswith("resource=https://ai.example")
        # Foundry's gateway fails to reach its own model. That is no token's fault.
        clouds.inject(Fault(status=401, code=GATEWAY_FAILURE))
        answer = client.call("azure/gpt-6.1-sol", "Hi there")
    assert (answer.attempts, answer.failures[0].error, cloud.fetched) == (2, "OverloadedError", 1)


def test_a_client_that_is_closed_leaves_the_fetch_to_others(clouds: Simulator, cloud: FakeCloud) -> None:
    cloud.pause = 0.5

    async def leave() -> None:
        async with Client(cache="off") as client:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.2):
                    await client.acall("azure/gpt-6.1-sol", "Hi")

    asyncio.run(leave())
    with Client(cache="off") as client:
        assert client.call("azure/gpt-6.1-sol", "What is 2+3?").text == "5"
    assert cloud.fetched == clouds.ledger().requests == 1


def test_a_data_zone_is_paid_for_everywhere(clouds: Simulator, tmp_path: Path) -> None:
    model, costs = "azure/mine", []
    for zone in ("", "eu/"):
        ledger, settings = tmp_path / f"{len(zone)}.jsonl", {"deployments": {model: f"{zone}gpt-5.4"}}
        with Client(cache="off", ledger=ledger, budget=(budget := Budget(1)), **settings) as client:
            answer = client.call(model, "Hi " * 1000, max_tokens=1000)
            spent = [answer.cost, client.price(model, answer.usage), budget.spent]
            spent += [orjson.loads(line)["usd"] for line in ledger.read_text().splitlines()]
            spent.append(client.estimate(model, ["Hi " * 1000], max_tokens=1000).cost.high)
            with pytest.raises(BudgetExceededError) as caught:
                client.call(model, "Hi " * 1000, max_tokens=1000, budget=Budget(0))
        costs.append([float(usd) for usd in (*spent, caught.value.needed)])
    assert len(costs[0]) == 6
    assert costs[1] == pytest.approx([1.1 * usd for usd in costs[0]])


def test_a_machine_of_googles_has_an_identity(
    clouds: Simulator, cloud: FakeCloud, monkeypatch: pytest.MonkeyPatch, run_script: RunScript
) -> None:
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS")
    for name in ("GCE_METADATA_HOST", "GCE_METADATA_ROOT", "GCE_METADATA_IP"):
        monkeypatch.setenv(name, cloud.address)  # read when google-auth is imported
    ended = run_script(f"from llm_provider import call; print(call('vertex_ai/{GEMINI}', '2+3?').text)")
    assert (ended.returncode, ended.stdout, cloud.fetched) == (0, "5\n", 1)


def test_a_deployment_is_the_model_that_the_user_says(clouds: Simulator) -> None:
    with Client(cache="off", deployments={"azure/mine": "gpt-6.1-sol"}) as client:
        with pytest.raises(RequestError, match="it reasons before it answers"):
            client.call("azure/mine", "Hi", temperature=0.5)
        assert client.call("azure/other", "What is 2+3?", temperature=0.5).text == "5"
        client.call("azure/mine", "Hi", max_tokens=50)
        assert clouds.requests()[-1].body["max_completion_tokens"] == 50
        assert [
            answer.text
            for answer in client.call_many("azure/mine", ["1+1?", "2+2?"], delivery="batch", cache="use")
        ] == ["2", "4"]
        assert len(client.embed("azure/text-embedding-3-small", ["a", "b"]).vectors) == 2


@pytest.mark.parametrize("endpoint", ["chat", "responses"])
def test_a_batch_at_azure_names_chat_completions_whatever_its_rows_name(
    endpoint: Any, clouds: Simulator, own_cache: Path
) -> None:
    with Client() as client:
        answers = client.call_many("azure/gpt-5", ["1+1?", "2+2?"], delivery="batch", endpoint=endpoint)
        assert [answer.text for answer in answers] == ["2", "4"]
    (created,) = [each.body for each in clouds.requests() if each.path.endswith("/batches") and each.body]
    assert created["endpoint"] == "/v1/chat/completions"


@pytest.mark.parametrize("transport", ["aiohttp", "http1"])
def test_a_key_of_vertexs_express_mode_needs_no_project(
    transport: Any, clouds: Simulator, cloud: FakeCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GOOGLE_CLOUD_PROJECT")
    monkeypatch.setenv("VERTEX_API_KEY", "AQ.a-key-of-express-mode")
    with Client(cache="off", transport=transport) as client:
        assert client.call(f"vertex_ai/{GEMINI}", "What is 2+3?").text == "5"
        assert client.count_tokens(f"vertex_ai/{GEMINI}", "Hi there").method == "provider"
        clouds.inject(Fault(status=401, message="AQ.a-key-of-express-mode is wrong"))
        with pytest.raises(AuthenticationError, match=r"\*\*\* is wrong"):
            client.call(f"vertex_ai/{GEMINI}", "Hi")
    sent = clouds.requests()[0]
    assert sent.path == f"/vertex_ai/v1/publishers/google/models/{GEMINI}:generateContent"
    assert ("x-goog-api-key" in sent.headers, "authorization" in sent.headers) == (True, False)
    assert (cloud.fetched, len(clouds.requests())) == (0, 3)
    monkeypatch.delenv("GOOGLE_VERTEX_BASE_URL")
    assert resolve(f"vertex_ai/{GEMINI}").base_url == "https://aiplatform.googleapis.com/v1"


@pytest.mark.parametrize("model", ["gemini-embedding-001", "text-embedding-005"])
def test_both_methods_of_embeddings_are_spoken(model: str, clouds: Simulator) -> None:
    with Client(cache="off") as client:
        found = client.embed(f"vertex_ai/{model}", ["a bird", "fish"], dimensions=8)
    assert [len(vector) for vector in found.vectors] == [8, 8]
    assert found.usage.input_tokens == 3


@pytest.mark.parametrize(
    ("model", "settings", "problem"),
    [
        ("azure/x", {}, "AZURE_OPENAI_ENDPOINT"),
        ("vertex_ai/gemini-x", {}, "GOOGLE_CLOUD_PROJECT"),
        ("bedrock/anthropic.claude-x", {}, "AWS_REGION"),
        ("azure/x", {"deployments": {"openai/x": "m"}}, "write 'azure/mine'"),
        ("azure/x", {"deployments": {"azure/x": "openai/m"}}, "a model such as"),
        ("azure/x", {"keys": {"anthropic": lambda: "t"}}, "takes no tokens"),
    ],
)
def test_what_is_missing_is_named(model: str, settings: Any, problem: str) -> None:
    with pytest.raises(RequestError, match=problem), Client(**settings) as client:
        client.call(model, "Hi")


ALIASES = {
    "azure": "azureopenai/ azureopenai: azure: openai/azure/ azure_openai/",
    "azure_ai": "azureanthropic/ azureanthropic: azureai/ anthropic/azure/ mistral/azure/",
    "bedrock": "bedrock: anthropic/bedrock/",
    "bedrock_mantle": "bedrock-mantle: bedrock-mantle/ openai/bedrock/",
    "vertex_ai": "vertexai/ vertexai: vertexaianthropic/ vertexaianthropic: google-cloud: google-vertex: "
    "google-vertex/ google/vertex/ anthropic/vertex/",
    "gemini": "google: google/ google-gla: google-gla/",
    "groq": "groq:",
}
"""Provider → how any-llm, pydantic-ai and inspect_ai write it. A colon is that of pydantic-ai."""


@pytest.mark.parametrize("name", ["gemini-x", "arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.x"])
def test_the_name_of_another_tool_has_its_remedy(name: str) -> None:
    for provider, aliases in ALIASES.items():
        for alias in aliases.split():
            with pytest.raises(RequestError, match=f"write '{provider}/{name}'"):
                resolve(f"{alias}{name}")


def test_a_prompt_that_is_too_long_for_bedrock_is_no_other_mistake(clouds: Simulator) -> None:
    body = '{"message": "Input is too long for requested model."}'
    clouds.inject(Fault(status=400, body=body, content_type="application/json"))
    with Client(cache="off") as client, pytest.raises(ContextWindowExceededError):
        client.call(f"bedrock/anthropic.{CLAUDE}", "Hi")
