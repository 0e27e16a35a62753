"""The cost of calls, and limits on it."""
