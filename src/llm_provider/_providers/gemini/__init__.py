"""Gemini's `generateContent` format.

In the order of imports: `decode` reads replies and errors, `assembler` reads streams, `encode_contents`
converts messages, `api_version` reads the version that the user chooses, and `adapter` has the parameters of
each model family and tools. When it connects, it imports `connection`, which has the SDK's clients. Below
that, `sdk_http_clients` sends the bytes, and requests go through `typed_requests` with the configuration of
`light_config`, or through `private_requests`.
"""
