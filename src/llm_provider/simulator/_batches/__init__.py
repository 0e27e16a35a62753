"""The batch and file endpoints of the simulated providers.

`jobs` keeps files and batches and works them off on a clock that can run fast. `openai`, `anthropic` and
`gemini` speak the wire formats, `exchange` reads requests, `endpoints` finds the format that serves a
path, and `models` lists models. `references` refuses messages that refer to files which were not uploaded.
"""
