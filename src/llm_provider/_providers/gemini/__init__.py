"""Gemini's `generateContent` format.

Beside the files of every format: `api_version` reads the version that the user chooses. `sdk_http_clients`
sends the bytes of `connection`, whose requests go through `typed_requests` with the configuration of
`light_config`, or through `private_requests`.
"""
