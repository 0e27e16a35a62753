"""`check`: what an account really does, told by probes. No extra; tests/_features/check."""
