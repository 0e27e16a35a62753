"""The calls, from a request to its stored and paid answer."""
