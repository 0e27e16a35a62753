"""`decide`: typed questions, answered by probabilities. Extra `plot`; tests/_features/decide."""
