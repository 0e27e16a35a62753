"""The requests of a call.

`sender` sends them, one after the other, and `attempt` makes one of them. `key_pool` chooses the API key and
the server, with the help of `prompt_memory`. `reservation` reserves the `worst_case` in the budgets.
`uploads` has the files that are too large for a request, `retry_request` repeats requests that are no calls,
and `recorder` records the cost.
"""
