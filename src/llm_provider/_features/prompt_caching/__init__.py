"""The prompt caches of providers. No extra; tests/_features/prompt_caching."""
