"""Files that are uploaded once and named in later requests. No extra; tests/_features/uploads."""
