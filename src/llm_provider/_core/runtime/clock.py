"""The clocks that the library reads, and how a thread of it sleeps.

A simulation can replace these functions in this module, so they are looked up when they are called.

freezegun stops the clocks of `time`, and a wait on a clock that stands still would never end. It leaves
`clock_gettime` alone, also where this module is imported meanwhile. `time` is the user's, and may be frozen.
"""

import functools
import sys
from time import sleep, time, time_ns

if sys.platform == "win32":
    from time import monotonic, monotonic_ns, perf_counter
else:
    from time import CLOCK_MONOTONIC, clock_gettime, clock_gettime_ns

    monotonic = perf_counter = functools.partial(clock_gettime, CLOCK_MONOTONIC)
    monotonic_ns = functools.partial(clock_gettime_ns, CLOCK_MONOTONIC)

__all__ = ["monotonic", "monotonic_ns", "perf_counter", "sleep", "time", "time_ns"]
