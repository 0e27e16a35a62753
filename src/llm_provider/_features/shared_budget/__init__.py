"""Budgets that processes and machines share. No extra; tests/_features/shared_budget."""
