"""Pictures of results, costs and requests. Extra `plot`; tests/_features/pictures."""
