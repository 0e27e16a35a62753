"""The lifecycle of a call.

`call` has the call and the `Operation` that it performs; `chat` and `embed` are the operations.
`sent_requests` has the sums of what was sent for a call. `engine` is the lifecycle from top to bottom:
prepare, lookup, run. `several_parts` is the part of it for calls of several samples or texts. Below it,
`single_flight` lets equal calls share a request, and `machine_lease` those of several machines. `sender`
sends the requests of a call, and `attempt` makes one of them; `deltas` has what a stream emits.
`key_pool` chooses the API key, `reservation` reserves the `worst_case` in the budgets, `uploads` has the
files that are too large for a request, and `recorder` records the cost. `observed` hands calls to their
observers. `loop_state` has the objects that belong to one event loop. A batch begins with `batch_lookup` and
`template`, and continues with `batch` and `progress`, which has `notebook_bars` in a notebook; `early_stop`
ends it where every call would fail, and `preload` loads what it needs. `stream` has the streams that the user
iterates. `tool_loop` repeats calls until the model calls no more functions, and `tool_runner` runs the
functions.
"""
