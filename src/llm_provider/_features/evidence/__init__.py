"""Evidence of results that a stranger can verify. No extra; tests/_features/evidence."""
