"""`recheck`: whether a model still answers as before. No extra; tests/_features/recheck."""
