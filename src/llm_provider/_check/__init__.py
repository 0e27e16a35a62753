"""`llm-provider check`: what an account really does, beside what the library expects.

Order of imports: `report`, `traffic`, `cases`, `scrubbing`, `replies`, `account`, `probes`, `check`.
"""
