"""Results and answers as pages, tables and HTML. No extra; tests/_features/views."""
