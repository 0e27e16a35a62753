"""Many calls at once.

A batch begins with `lookup`, which uses a `template`, and goes on with `driver` and its `worker_pool`.
`prefix` lets the first call of a common prefix go alone, and `preload` loads what the batch needs. `progress`
is its bar, with `notebook_bars` in a notebook.
"""
