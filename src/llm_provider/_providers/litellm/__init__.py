"""Every provider without a route of its own, through litellm.

In the order of imports: `errors` maps litellm's exceptions, and `adapter` encodes and decodes in the format
of `openai.chat`. When it connects, it imports `connection`, which checks the `addresses` in the environment,
imports and calls litellm, and has `whole_replies` read what a server sends in place of a stream.
"""
