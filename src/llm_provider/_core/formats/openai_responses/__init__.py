"""OpenAI's Responses format (`POST /responses`). `items` and `calls` read its output items."""
