"""The structure that `response_format` asks for. The rules of each provider are in its folder."""
