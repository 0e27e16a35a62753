"""Rate control, retries and timeouts."""
