"""The providers' wire formats, all behind one protocol.

In the order of imports: `facts` is what an adapter tells other folders of a request; `adapter` is the
protocol; `parameters` writes parameters by the table of a format; `earlier_answers` warns of content that
only another provider accepts; `call_ids` names calls without ids, and `foreign_tools` tells the providers'
own tools apart; `errors` maps failures, `sse` splits streams, `body_size` bounds answers, `proxies` refuses
what no client can use, and `http_client` sends over aiohttp; `sdk_connection` serves the SDKs of OpenAI and
Anthropic; `vectors` and `embedding_models` serve all embeddings. Each wire format is a folder: `openai`,
`anthropic`, `gemini`, and `litellm`, which uses OpenAI's format. `registry` loads the adapter of a route when
the first call needs it, and `files` decides which files are uploaded. But for the names of tools, no field
name of a wire format stands outside its folder.
"""
