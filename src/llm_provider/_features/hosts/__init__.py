"""Hosts that speak OpenAI's format, also by a user's file. No extra; tests/_features/hosts."""
