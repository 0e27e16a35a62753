"""Why a model has no batches: what the user has not set up yet, or what is missing at its provider."""

from ..._core.requests.routing import Target

_BEDROCK = (
    "Bedrock's jobs (CreateModelInvocationJob) need a bucket of S3 and a role that may use it, and this "
    "library writes to none; 'claude-...' has batches at Anthropic, and 'gpt-...' at OpenAI"
)

NOT_SERVED = {
    "azure_ai": "Foundry has no batches for Claude; 'claude-...' has them at Anthropic",
    "bedrock": _BEDROCK,
    "bedrock_mantle": _BEDROCK,
    "vertex_ai": "Vertex's batches of embeddings are not served; 'gemini/gemini-embedding-...' has them",
}
"""Provider → why its batches are not served."""

SETUP = {
    "vertex_ai": (
        "Vertex's batches (batchPredictionJobs) need a bucket of Cloud Storage of yours: set "
        "VERTEX_BATCH_BUCKET='gs://bucket/folder'; 'gemini/gemini-...' has batches without one"
    ),
}
"""Provider → what its batches need, where the user has not set it."""


def explain(target: Target) -> str:
    """Why a target has no batches."""
    if target.route.batches is not None:
        return SETUP[target.provider]
    return NOT_SERVED.get(target.provider, f"{target.provider} has no batch API")
