"""`fallback=`: other models that answer where the first cannot. No extra; tests/_features/fallback."""
