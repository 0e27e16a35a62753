"""OpenAI's Chat Completions format, by the API reference for `POST /chat/completions`."""
