"""Model providers for other tools, each imported only where its package is installed.

Their requests go through the cache, rate control, retries, budgets and ledger of this library.
docs/integrations.md describes the use. `conversation` holds what `inspect_ai`, `dspy` (with `dspy_requests`)
and `llm` have in common.
"""
