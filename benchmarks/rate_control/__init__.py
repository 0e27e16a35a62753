"""Rate control in simulated time: `python -m benchmarks.rate_control`, from the root of the repository."""
