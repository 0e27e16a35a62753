"""Providers with batches that this library does not serve, and what is missing."""

_BEDROCK = (
    "Bedrock's jobs (CreateModelInvocationJob) need a bucket of S3 and a role that may use it, and this "
    "library writes to none; 'claude-...' has batches at Anthropic, and 'gpt-...' at OpenAI"
)

NOT_SERVED = {
    "azure_ai": "Foundry has no batches for Claude; 'claude-...' has them at Anthropic",
    "bedrock": _BEDROCK,
    "bedrock_mantle": _BEDROCK,
    "vertex_ai": (
        "Vertex's jobs (batchPredictionJobs) need a bucket of Cloud Storage or a table of BigQuery, and this "
        "library writes to none; 'gemini/gemini-...' has batches at the Gemini API"
    ),
}
"""Provider → why its batches are not served."""
