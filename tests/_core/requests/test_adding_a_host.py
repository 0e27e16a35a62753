"""A new OpenAI-compatible host is one row of `ROUTES`: no module of the package or tools/prices knows it.

tests/end_to_end/test_tasks.py adds one.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import llm_provider
from llm_provider._core.requests.routing import COMPATIBLE_HOSTS
from llm_provider._features.hosts.compatible_hosts import HOSTS
from support import parse_module

ROOT = Path(__file__).parents[3]
PACKAGE = Path(llm_provider.__file__).parent
TABLES = [
    PACKAGE / "_core" / "requests" / "routing.py", PACKAGE / "_features" / "hosts" / "compatible_hosts.py",
    *(PACKAGE / "_features" / "quirks").glob("*.py"),
    *(PACKAGE / "_features" / "batch_hosts").glob("*.py"),
    PACKAGE / "simulator" / "_batches" / "hosts.py",  # plays the hosts of batch_hosts
    PACKAGE / "_features" / "litellm" / "connection.py",  # lists of litellm's providers
    PACKAGE / "_core" / "formats" / "shared" / "payload.py",
    PACKAGE / "simulator" / "_behaviour" / "upstreams.py",
]  # fmt: skip

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
    ("_features/fresh_prices/litellm_map.py", "fireworks"): "litellm lists its size classes as models",
    ("_features/fresh_prices/litellm_map.py", "xai"): "a tier of its prices includes its limit",
    ("_features/fresh_prices/genai_data.py", "openrouter"): "aliases of its models are routes of their own",
    ("_features/fresh_prices/quotes.py", "mistral"): "one source alone has the prices of some models",
    ("_features/fresh_prices/quotes.py", "xai"): "one source alone has the prices of some models",
    ("_core/tokens/tokenizer.py", "mistral"): "a vocabulary has the name of its maker",
    ("_features/hosts/host.py", "deepseek"): "a vocabulary has the name of its maker",
    ("_core/tokens/tokenizer.py", "deepseek"): "a vocabulary has the name of its maker",
    ("_features/telemetry/spans.py", "xai"): "OpenTelemetry's conventions have another name for it",
    ("_features/telemetry/spans.py", "mistral"): "OpenTelemetry's conventions have another name for it",
    ("_features/clouds/routes.py", "xai"): "a maker of models at Bedrock",
    ("_features/cli/reconcile.py", "openrouter"): "it reports to administrators what it billed",
    ("_features/reconcile/usage_reports.py", "openrouter"): "its report has a shape of its own",
    ("simulator/_server/reports.py", "openrouter"): "its report has a shape of its own",
    ("_features/cli/models.py", "groq"): "an example of a provider's name",
    ("_features/foreign/remedies.py", "mistral"): "another library's name of a model at a cloud",
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
    ("_features/decide/litellm.py", "openrouter"): "litellm knows its endpoint for decisions",
    ("_features/decide/litellm.py", "fireworks"): "as above",
    ("simulator/_batches/openai.py", "mistral"): "its files have fields that its SDK requires",
    ("simulator/_simulator.py", "local"): "no price list has it, from which the simulator takes the others",
    ("simulator/formats/vectors.py", "mistral"): "the dimensions of its models, by their names",
    ("simulator/formats/openai_embeddings.py", "mistral"): "the simulator plays it: its limit on tokens",
    ("simulator/formats/openai_chat.py", "mistral"): "the simulator plays it: usage without being asked",
    ("simulator/formats/openai_chat.py", "groq"): "the simulator plays it: its service tier",
    ("simulator/formats/openai_chat.py", "openrouter"): "the simulator plays it: its field of reasoning",
    ("simulator/formats/openai_chat.py", "local"): "the simulator plays it: its field of reasoning",
}
"""File and host → the fact that makes the file name the host. A new host needs no such line."""


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
        text = "\n".join(texts).lower()
        # Names of other hosts are words, such as "lambda".
        for host, stem in stems.items():
            # The search takes long, so it is made only where the letters are.
            found = host != "local" and stem in text and re.search(rf"(?<![a-z]){stem}(?![a-z])", text)
            if host in texts or found:
                names.add((file, stem))
    assert names == set(OF_ONE_HOST)
