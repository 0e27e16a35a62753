"""A store that machines share behind the cache on disk. Extra `valkey`; tests/_features/second_level."""
