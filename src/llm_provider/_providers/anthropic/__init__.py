"""Anthropic's Messages format.

In the order of imports: `decode` reads replies and streams, `encode_messages` converts messages, and
`adapter` has the parameters of each model family, tools and structured output.
"""
