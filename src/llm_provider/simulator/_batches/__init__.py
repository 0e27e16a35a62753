"""The batch and file endpoints of the simulated providers.

`jobs` keeps files and batches and works them off on a clock that can run fast. `openai`, `anthropic` and
`gemini` speak the wire formats, and `endpoints` finds the one that serves a path.
"""
