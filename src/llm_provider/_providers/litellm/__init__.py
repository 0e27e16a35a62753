"""Every provider without a route of its own, through litellm, whose exceptions `errors` maps."""
