"""OpenAI's Responses format. `items` and `calls` read its output items."""
