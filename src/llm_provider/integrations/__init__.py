"""Model providers for other tools, each imported only where its package is installed.

`conversation` holds what the three have in common: `inspect_ai`, `dspy` (with `dspy_requests`) and `llm`.
"""
