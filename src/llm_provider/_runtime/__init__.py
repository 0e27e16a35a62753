"""The foundation of all other folders. No module here knows models, providers or money.

From the bottom: `frozen` makes frozen dataclasses faster; `late_fields` makes values when they are read;
`collector_pause` lets the garbage collector rest; `exact_decimal` adds decimals without rounding;
`clock_time` puts times and durations into words; `canonical_json` encodes the bytes that are hashed and sent;
`forks` waits for imports before a fork; `imports` waits for modules that another thread imports; `paths`
checks paths; `leases` lets one process of a machine hold a name; `notebooks` knows Jupyter and marimo;
`signal_wakeup` lets interrupts end asynchronous cells at once; `daemon_thread` runs a function that takes
long; `json_pieces` reads large JSON; `event_loop` runs all network work in one thread.
"""
