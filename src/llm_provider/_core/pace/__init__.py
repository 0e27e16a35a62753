"""The pace of requests: scopes, controllers, windows, outages and retries. No files, no processes."""
