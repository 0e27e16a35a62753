"""The clocks that the library reads, and how a thread of it sleeps.

A simulation replaces these functions in this module. So they are looked up when they are called, as in
`clock.monotonic()`. What only formats a moment stays with `time`.
"""

from time import monotonic, monotonic_ns, perf_counter, sleep, time, time_ns

__all__ = ["monotonic", "monotonic_ns", "perf_counter", "sleep", "time", "time_ns"]
