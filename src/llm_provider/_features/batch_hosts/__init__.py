"""Batch APIs of hosts in other shapes than OpenAI's. No extra; tests/_features/batch_hosts."""
