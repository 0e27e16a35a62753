"""The clocks that the library reads, and how a thread of it sleeps.

A simulation can replace these functions in this module, so they are looked up when they are called.
"""

from time import monotonic, monotonic_ns, perf_counter, sleep, time, time_ns

__all__ = ["monotonic", "monotonic_ns", "perf_counter", "sleep", "time", "time_ns"]
