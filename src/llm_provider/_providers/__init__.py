"""The providers' wire formats, each behind the same protocol.

`facts` is the vocabulary in which adapters describe a request to other folders; `adapter` is the protocol;
`registry` loads the adapter of a route. `errors`, `sse` and `http_client` serve all formats, `sdk_connection`
serves the SDKs of OpenAI and Anthropic. Then one folder per format: `openai`, `anthropic`, `gemini`,
`litellm`. No field name of a wire format stands outside its folder.
"""
