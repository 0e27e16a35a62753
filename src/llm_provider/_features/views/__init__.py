"""Results and answers as pages, tables and HTML. Extra `markdown` for notebooks; tests/_features/views."""
