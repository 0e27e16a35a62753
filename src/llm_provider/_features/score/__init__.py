"""`score`: the log probabilities of given texts. No extra; tests/_features/score."""
