"""OpenAI's Responses format, by the API reference for `POST /responses`.

`items` and `calls` read its output items.
"""
