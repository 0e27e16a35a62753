"""Prices that are newer than the shipped table. No extra; tests/_features/fresh_prices."""
