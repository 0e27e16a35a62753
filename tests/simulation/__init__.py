"""The whole library under one deterministic scheduler."""
