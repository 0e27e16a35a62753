"""OpenAI's Chat Completions format, by the API reference for `POST /chat/completions`.

Compatible hosts and litellm speak it too. Beside the files of every format: `calls` reads tool calls,
`text_chunk` recognises the chunks of a stream that only add text, `strict_schema` writes schemas for strict
mode, and `usage` reads the counts of both formats.
"""
