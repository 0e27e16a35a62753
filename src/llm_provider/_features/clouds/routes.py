"""The rows of `ROUTES` for clouds: the models of other makers, at addresses and with identities of the cloud.

Paths and models are as in the SDKs' platform clients and in litellm 1.106, which serves the others.
"""

from dataclasses import replace

from ..._core.requests.route import GROK_LACKS, BatchService, EmbeddingLimits, Route
from .addresses import Cloud

_BEDROCK_KEYS = ("AWS_BEARER_TOKEN_BEDROCK", "BEDROCK_MANTLE_API_KEY")

_MANTLE = Cloud(
    "aws",
    "bedrock-mantle",
    server="https://bedrock-mantle.{region}.api.aws",
    server_variables=("BEDROCK_MANTLE_API_BASE", "ANTHROPIC_BEDROCK_MANTLE_BASE_URL", "AWS_BEDROCK_BASE_URL"),
    path="",
    models="",
)

_VERTEX = Cloud(
    "google",
    "https://www.googleapis.com/auth/cloud-platform",
    server="https://{host}",
    server_variables=("GOOGLE_VERTEX_BASE_URL", "VERTEXAI_API_BASE", "ANTHROPIC_VERTEX_BASE_URL"),
    path="/v1/projects/{project}/locations/{location}",
    models="",
)

_VERTEX_BATCHES = BatchService(200_000, 1_000_000_000, host="vertex_ai", needs=("VERTEX_BATCH_BUCKET",))

_GOOGLE = _VERTEX._replace(
    models=r"(gemini-(?!embedding)[^/]+)",
    maker="gemini",
    operation="publishers/google/models/{model}",
    express_variable="VERTEX_API_KEY",
)

_GEMINI_ON_VERTEX = Route(
    "vertex_ai",
    None,
    adapter="gemini",
    key_variables=("VERTEX_API_KEY",),
    batches=_VERTEX_BATCHES,
    other_names=(
        "vertexai",
        "vertex",
        "google-cloud",
        "google-vertex",
        "google_vertex",
        "vertexaianthropic",
    ),
    cloud=_GOOGLE,
)

_OPENAI_ON_MANTLE = Route(
    "bedrock_mantle",
    None,
    key_variables=_BEDROCK_KEYS,
    default_effort=True,
    like_openai=True,
    models_lack=GROK_LACKS,
    stores_answers=True,
    cloud=_MANTLE._replace(
        path="/openai/v1", models=r"((?:openai\.gpt-(?!oss)|google\.gemma-4|xai\.)[^/]+)", maker="openai"
    ),
)

CLOUD_ROWS = (
    Route(
        "azure",
        None,
        key_variables=("AZURE_OPENAI_API_KEY", "AZURE_API_KEY"),
        like_openai=True,
        models_lack=GROK_LACKS,
        stores_answers=True,
        default_effort=True,
        embedding_limits=EmbeddingLimits(texts=2_048, tokens=300_000, text_tokens=8_192),
        # A batch names this endpoint also where its rows name /v1/responses: mozilla-ai/any-llm#1348.
        batches=BatchService(100_000, 200_000_000, endpoints=(("responses", "chat/completions"),)),
        # As OpenAI's own API.
        output_only=frozenset({"reasoning", "reasoning_content", "reasoning_details", "thinking_blocks"})
        | {"annotations", "images"},
        other_names=("azureopenai", "azure_openai"),
        cloud=Cloud(
            "entra",
            "https://cognitiveservices.azure.com/.default",
            server="",
            server_variables=("AZURE_OPENAI_ENDPOINT", "AZURE_API_BASE"),
            path="/openai/v1",
            models=r"([^/]+)",
            maker="openai",
            key_header="api-key",
        ),
    ),
    Route(
        "azure_ai",
        None,
        adapter="anthropic",
        key_variables=("ANTHROPIC_FOUNDRY_API_KEY", "AZURE_AI_API_KEY"),
        other_names=("azureanthropic", "azureai"),
        cloud=Cloud(
            "entra",
            "https://ai.azure.com/.default",
            server="https://{resource}.services.ai.azure.com",
            server_variables=("ANTHROPIC_FOUNDRY_BASE_URL", "AZURE_AI_API_BASE"),
            path="/anthropic",
            models=r"(claude-[^/]+)",
            maker="anthropic",
            key_header="api-key",
        ),
    ),
    Route(
        "bedrock_mantle",
        None,
        adapter="anthropic",
        key_variables=_BEDROCK_KEYS,
        other_names=("bedrock-mantle",),
        cloud=_MANTLE._replace(path="/anthropic", models=r"(anthropic\.[^/]+)", maker="anthropic"),
    ),
    _OPENAI_ON_MANTLE,
    replace(_OPENAI_ON_MANTLE, cloud=_MANTLE._replace(path="/v1", models=r"([^/]+)")),
    Route(
        "bedrock",
        None,
        adapter="anthropic",
        batches=BatchService(
            50_000,
            1_000_000_000,
            host="bedrock",
            needs=("BEDROCK_BATCH_BUCKET", "BEDROCK_BATCH_ROLE_ARN"),
        ),
        key_variables=_BEDROCK_KEYS,
        cloud=Cloud(
            "aws",
            "bedrock",
            server="https://bedrock-runtime.{region}.amazonaws.com",
            server_variables=("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", "ANTHROPIC_BEDROCK_BASE_URL"),
            path="",
            # Claude with the Messages format. litellm serves the others, by Converse.
            models=r"(?:invoke/)?((?:[a-z-]+\.)?anthropic\.claude-(?!v\d|instant)[^/]+)",
            maker="anthropic",
            operation="model/{model}/invoke",
            version="bedrock-2023-05-31",
        ),
    ),
    Route(
        "vertex_ai",
        None,
        adapter="anthropic",
        batches=_VERTEX_BATCHES,
        cloud=_VERTEX._replace(
            models=r"(claude-[^/]+)",
            maker="anthropic",
            operation="publishers/anthropic/models/{model}:rawPredict",
            version="vertex-2023-10-16",
        ),
    ),
    replace(
        _GEMINI_ON_VERTEX,
        batches=None,
        other_names=(),
        cloud=_GOOGLE._replace(
            models=r"((?:gemini-embedding|text-embedding-\d|text-multilingual-embedding-)[^/]+)"
        ),
    ),
    _GEMINI_ON_VERTEX,
)
"""Of several rows with one name, the first serves that has the model."""
