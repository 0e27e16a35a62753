"""The calls, from a request to its stored and paid answer.

`call` has the call and the `Operation` that it performs, `sent_requests` the sums of what was sent for it,
`deltas` what a stream emits, `early_stop` what the failures of a batch mean, and `observation` hands calls to
their observers. The rooms come in the order of imports: `sending` sends requests, `lifecycle` is the way of
one call, `operations` are what is done with a model, `batch` has many calls at once, and `tools` repeats
calls until the model calls no more functions.
"""
