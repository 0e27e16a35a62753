"""Scores of results: means, intervals and comparisons. No extra; tests/_features/evaluation."""
