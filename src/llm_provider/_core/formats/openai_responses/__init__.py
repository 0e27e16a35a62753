"""OpenAI's Responses format (`POST /responses`). `decode` reads its output items."""
