"""`llm-provider check`: what an account really does, beside what the library expects."""
