"""Hosts that users describe in a file, and hosts that speak OpenAI's format. No extra; tests/_features/hosts."""
