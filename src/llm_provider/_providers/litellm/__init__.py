"""Every provider without a route of its own, through litellm: `adapter`."""
