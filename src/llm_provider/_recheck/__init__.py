"""Whether a model still answers as before: `recheck`, which `_client/recheck` runs."""
