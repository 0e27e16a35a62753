"""The foundation of all other folders. No module here knows models, providers or money.

From the bottom: `clock` tells the time; `forks` runs what must happen around a fork; `frozen` makes frozen
dataclasses faster, and values when they are read; `exact_decimal` adds decimals without rounding;
`canonical_json` encodes the bytes that are hashed and sent; `imports` waits for modules that another thread
imports; `randomness` makes random numbers and names; `files` checks paths and replaces files; `leases` lets
one process of a machine hold a name; `databases` opens SQLite; `notebooks` knows Jupyter and marimo;
`threads` starts threads and timers; `json_pieces` reads large JSON while no garbage is collected;
`event_loop` runs all network work in one thread.
"""
