"""Care of a cache: archives, maintenance, and why an answer was not found. No extra; tests/_features/cache_care."""
