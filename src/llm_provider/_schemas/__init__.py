"""The structure that `response_format` asks for: JSON schemas, Python types, and the reading of answers.

Nothing here knows a provider. The rules of each provider are in its folder of `_providers`.
"""
