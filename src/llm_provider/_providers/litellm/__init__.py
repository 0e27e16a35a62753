"""Every provider without a route of its own, through litellm.

In the order of imports: `errors` maps litellm's exceptions, and `adapter` encodes and decodes in the format
of `openai.chat`. When it connects, it imports `connection`, which imports and calls litellm.
"""
