"""OpenAI's Chat Completions format, which compatible hosts and litellm speak as well.

Beside the files of every format: `calls` reads tool calls, `text_chunk` recognises the chunks of a stream
that only add text, `strict_schema` writes schemas for strict mode, and `usage` reads the counts of both
formats.
"""
