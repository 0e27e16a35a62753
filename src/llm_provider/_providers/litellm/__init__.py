"""Every provider without a route of its own, through litellm.

Beside the files of every format: `errors` maps litellm's exceptions, and `addresses` checks the addresses in
the environment.
"""
