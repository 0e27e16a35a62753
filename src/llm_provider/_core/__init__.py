"""The heart: one call from its arguments to its stored result. It imports no feature and nothing optional."""
