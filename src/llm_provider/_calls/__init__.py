"""The lifecycle of a call.

`call` is the call and the `Operation` that it performs; `chat` is an operation. `engine` is the lifecycle
from top to bottom: prepare, lookup, run. Below it: `single_flight` lets equal calls share a request; `sender`
sends the requests of a call (the live `delivery`), `attempt` makes one of them, `key_pool` chooses its API
key, `reservation` reserves its `worst_case` in the budgets, and `recorder` records its cost; `loop_state`
holds what belongs to one event loop. A batch is `batch_lookup` with `template`, then `batch` and `progress`.
`stream` is what the user of a stream holds.
"""
