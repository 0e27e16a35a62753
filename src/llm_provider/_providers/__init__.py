"""The providers' wire formats, all behind one protocol.

In the order of imports: `adapter` is the protocol, `errors` maps failures, `sse` splits streams, and
`http_client` sends over aiohttp; `sdk_connection` serves the SDKs of OpenAI and Anthropic. Each wire format
is a folder: `openai`, `anthropic`, `gemini`, and `litellm`, which uses OpenAI's format. `registry` loads the
adapter of a route when the first call needs it.
"""
