"""Names and messages of other libraries, and what to write instead. No extra; tests/_features/foreign."""
