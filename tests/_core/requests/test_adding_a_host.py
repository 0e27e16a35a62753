"""A new OpenAI-compatible host is one row of `ROUTES`: no module of the package or tools/prices knows it."""

import ast
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import llm_provider
from llm_provider._core.requests.routing import COMPATIBLE_HOSTS, ROUTES
from llm_provider._features.hosts.compatible_hosts import HOSTS
from llm_provider.simulator import Simulator
from price_sources import TODAY, entry, needs_genai_prices, price_map
from support import copy_package, parse_module, run_copy

ROOT = Path(__file__).parents[3]
PACKAGE = Path(llm_provider.__file__).parent
TABLES = [
    PACKAGE / "_core" / "requests" / "routing.py", PACKAGE / "_features" / "hosts" / "compatible_hosts.py",
    *(PACKAGE / "_features" / "quirks").glob("*.py"),
    PACKAGE / "_features" / "litellm" / "connection.py",  # lists of litellm's providers
    PACKAGE / "_core" / "formats" / "shared" / "payload.py",
    PACKAGE / "simulator" / "_behaviour" / "upstreams.py",
]  # fmt: skip

ROW = """
    Route(
        "acme_ai",
        "https://api.acme.example/v1",
        lacks=frozenset({"n", "seed"}),
        spelling={"top_p": "nucleus", "dimensions": "vector_size"},
        embedding_limits=EmbeddingLimits(texts=2, tokens=None, text_tokens=None),
        output_only=_REASONING,
        litellm_names=("acme_cloud",),
        genai_prices_name="cohere",
    ),
"""
MODEL = "acme_ai/org/model-1"

OF_ONE_HOST = {
    ("_features/score/openai.py", "local"): "the kind of this server is not known",
    ("simulator/formats/scoring.py", "fireworks"): "its completions have ids of tokens",
    ("simulator/formats/scoring.py", "together_ai"): "its completions have a part for the prompt",
    ("simulator/formats/scoring.py", "groq"): "its completions tell nothing of a prompt",
    ("_core/money/pricing.py", "fireworks"): "its models have resource paths as second names",
    ("_core/money/pricing.py", "deepseek"): "its price depends on the hour",
    ("_core/money/pricing.py", "openrouter"): "a router, which bills what the host charges",
    ("_core/money/pricing.py", "huggingface"): "a router, which bills what the host charges",
    ("_core/money/pricing.py", "together_ai"): "the routers have another name for it",
    ("_features/litellm/encode.py", "openrouter"): "the names of its own fields",
    ("_core/formats/openai/embeddings.py", "openrouter"): "a router, which litellm reaches too",
    ("tools/prices/litellm_prices.py", "fireworks"): "litellm lists its size classes as models",
    ("tools/prices/litellm_prices.py", "xai"): "a tier of its prices includes its limit",
    ("tools/prices/genai_prices.py", "openrouter"): "aliases of its models are routes of their own",
    ("_core/tokens/vocabularies.py", "mistral"): "a vocabulary has the name of its maker",
    ("_features/hosts/host.py", "deepseek"): "a vocabulary has the name of its maker",
    ("_core/tokens/vocabularies.py", "deepseek"): "a vocabulary has the name of its maker",
    ("_features/telemetry/spans.py", "xai"): "OpenTelemetry's conventions have another name for it",
    ("_features/telemetry/spans.py", "mistral"): "OpenTelemetry's conventions have another name for it",
    ("_features/clouds/routes.py", "xai"): "a maker of models at Bedrock",
    ("_features/cli/reconcile.py", "openrouter"): "it reports to administrators what it billed",
    ("_features/reconcile/usage_reports.py", "openrouter"): "its report has a shape of its own",
    ("simulator/_server/reports.py", "openrouter"): "its report has a shape of its own",
    ("_features/cli/models.py", "groq"): "an example of a provider's name",
    ("_features/foreign/parameters.py", "mistral"): "another library's name of a model at a cloud",
    ("_core/journey/recorder.py", "local"): "a server of the user's own has no price",
    ("_features/models/known_models.py", "xai"): "a provider that people call by the name of its models",
    ("_core/formats/shared/errors.py", "mistral"): "the header of its request ids has its name",
    ("_features/rich_content/openai.py", "groq"): "the names of its own fields",
    ("_core/requests/parameter_table.py", "openrouter"): "the advice for upstream names the routers",
    ("simulator/_settings.py", "openrouter"): "the help of a setting names the routers",
    ("simulator/formats/openai_chat.py", "together_ai"): "the simulator plays it: its log probabilities",
    ("_core/requests/model_kinds.py", "local"): "its users give their models any names",
    ("_core/requests/model_kinds.py", "mistral"): "the names of its models that do not chat",
    ("_core/requests/model_kinds.py", "openrouter"): "its models have the names of their makers",
    ("_core/formats/shared/embeddings.py", "deepseek"): "the names of its chat models, which do not embed",
    ("_core/formats/shared/embeddings.py", "mistral"): "the names of its models; one is suggested",
    ("_core/formats/shared/embeddings.py", "local"): "its users give their models any names",
    ("_core/formats/openai/embeddings.py", "mistral"): "the dimensions of its models, by their names",
    ("simulator/_batches/openai.py", "together_ai"): "its files have a purpose of their own",
    ("simulator/_simulator.py", "local"): "no price list has it, from which the simulator takes the others",
    ("simulator/formats/vectors.py", "mistral"): "the dimensions of its models, by their names",
    ("simulator/formats/openai_embeddings.py", "mistral"): "the simulator plays it: its limit on tokens",
    ("simulator/formats/openai_chat.py", "mistral"): "the simulator plays it: usage without being asked",
    ("simulator/formats/openai_chat.py", "groq"): "the simulator plays it: its service tier",
    ("simulator/formats/openai_chat.py", "openrouter"): "the simulator plays it: its field of reasoning",
    ("simulator/formats/openai_chat.py", "local"): "the simulator plays it: its field of reasoning",
}
"""File and host → the fact that makes the file name the host. A new host needs no such line."""


@pytest.fixture(scope="module")
def extended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package whose table has one row more."""
    assert "acme_ai" not in ROUTES
    return copy_package(
        tmp_path_factory.mktemp("host"),
        [("_core/requests/routing.py", '    Route(\n        "local"', ROW.lstrip("\n"))],
    )


def test_calls_streams_vectors_and_refusals_follow_the_row(extended: Path, llm_simulator: Simulator) -> None:
    program = f"""
from llm_provider import UnsupportedParameterError, call, embed, stream
answer = call({MODEL!r}, "What is 1+1?", top_p=0.5, n=2)
assert (answer.texts, answer.provider, answer.cost) == (["2", "2"], "acme_ai", None)
with stream({MODEL!r}, "one two") as deltas:
    assert "".join(delta.text for delta in deltas) == "echo: one two"
assert deltas.response.usage.output_tokens > 0
embeddings = embed({MODEL!r}, ["one", "two", "three"], dimensions=8)
assert (len(embeddings.vectors), embeddings.provider, embeddings.cost) == (3, "acme_ai", None)
assert embeddings.usage.input_tokens > 0
assert embed({MODEL!r}, ["three"], dimensions=8).cached
try:
    call({MODEL!r}, "Hi", seed=1)
except UnsupportedParameterError as error:
    print(error)

# Fields of an answer that the host itself refuses are not sent back to it.
import os
del os.environ["ACME_BASE_URL"]
from llm_provider._core.formats.openai.encode import encode
from llm_provider._core.requests.request import Request
from llm_provider._core.requests.routing import resolve
answer = {{"role": "assistant", "content": "Hello", "reasoning": "short", "refusal": None}}
messages = [{{"role": "user", "content": "Hi"}}, answer, {{"role": "user", "content": "Hi"}}]
sent = encode(Request.build({MODEL!r}, messages, {{}}), resolve({MODEL!r})).payload["messages"]
assert set(sent[1]) == {{"role", "content", "refusal"}}, sent
"""
    ended = run_copy(extended, "-c", program, **llm_simulator.environment("acme_ai"))
    assert ended.returncode == 0, ended.stderr
    assert "seed" in ended.stdout
    assert "leave it out; OpenAI's Chat Completions" in ended.stdout
    requests = llm_simulator.requests("acme_ai")
    assert len(requests) == llm_simulator.ledger().requests == 5
    assert {request.model for request in requests} == {"org/model-1"}
    calls, embeddings = requests[:3], requests[3:]
    assert {request.path for request in calls} == {"/acme_ai/v1/chat/completions"}
    assert [request.body.get("nucleus") for request in calls] == [0.5, 0.5, None]
    assert {request.path for request in embeddings} == {"/acme_ai/v1/embeddings"}
    assert sorted(request.body["input"] for request in embeddings) == [["one", "two"], ["three"]]
    assert [request.body["vector_size"] for request in embeddings] == [8, 8]


@needs_genai_prices
def test_prices_are_refreshed_under_the_sources_names(extended: Path, tmp_path: Path) -> None:
    listed = price_map(tmp_path, acme_cloud__org__model_1=entry("acme_cloud", output_cost_per_token=1e-05))
    file = shutil.copy(extended / "prices.csv", tmp_path)
    command = ("-m", "tools.prices", "--litellm", str(listed), "--day", TODAY)
    ended = run_copy(extended, *command, "--file", str(file))
    assert ended.returncode == 0, ended.stderr
    rows = Path(file).read_text(encoding="utf-8")
    assert re.search(r"^acme_ai,org/model_1,standard,0,2,.*litellm 1\.2\.3", rows, re.MULTILINE)
    assert re.search(r"^acme_ai,command-.*genai-prices", rows, re.MULTILINE)


def strings(path: Path) -> Iterator[str]:
    """The texts in a module's code, without its docstrings."""
    tree = parse_module(path)
    documentation = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
            yield node.value


def test_no_other_module_names_a_host() -> None:
    names = set()
    # "together" and "local" are words too: of these only the provider's whole name counts.
    stems = {host: host.removesuffix("_ai") for host in set(COMPATIBLE_HOSTS) - HOSTS.keys()}
    stems["together_ai"] = "together_ai"
    for path in (*PACKAGE.rglob("*.py"), *(ROOT / "tools" / "prices").glob("*.py")):
        if path in TABLES:
            continue
        file = path.relative_to(PACKAGE if path.is_relative_to(PACKAGE) else ROOT).as_posix()
        texts = set(strings(path))
        text = "\n".join(texts)
        # Names of other hosts are words, such as "lambda".
        for host, stem in stems.items():
            found = host != "local" and re.search(rf"(?i)(?<![a-z]){stem}(?![a-z])", text)
            if host in texts or found:
                names.add((file, stem))
    assert names == set(OF_ONE_HOST)
