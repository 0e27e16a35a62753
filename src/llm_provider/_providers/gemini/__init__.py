"""Gemini's `generateContent` format, by the API reference and the types of google-genai 3.4.

Beside the files of every format: `sdk_http_clients` sends the bytes of `connection`, whose requests go by
`private_requests` or `typed_requests`.
"""
