"""Whether a model still answers as before: `recheck`, which `_client/recheck` runs.

In order: statistics, report, stored_answers, history, border_prompts.
"""
