"""`delta.partial`: the structured answer of a stream so far. No extra; tests/_features/partial."""
