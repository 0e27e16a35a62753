"""Lists of models, and counts of tokens by the provider. No extra; tests/_features/models."""
