"""The evidence of results: a file that a stranger checks without keys and without a network."""
