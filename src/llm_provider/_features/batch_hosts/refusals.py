"""Why a model has no batches: what the user has not set up yet, or what is missing at its provider."""

from ..._core.requests.routing import Target

NOT_SERVED = {
    "azure_ai": "Foundry has no batches for Claude; 'claude-...' has them at Anthropic",
    "bedrock_mantle": (
        "Mantle's models have no batches here; 'bedrock/anthropic...' has them, 'gpt-...' at OpenAI"
    ),
    "vertex_ai": "Vertex's batches of embeddings are not served; 'gemini/gemini-embedding-...' has them",
}
"""Provider → why its batches are not served."""

SETUP = {
    "bedrock": (
        "Bedrock's batches (CreateModelInvocationJob) need a bucket of S3 of yours and a role for it: "
        "set BEDROCK_BATCH_BUCKET='s3://bucket/folder' and BEDROCK_BATCH_ROLE_ARN; 'claude-...' has batches "
        "without them"
    ),
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
