"""Care of a cache: archives, maintenance, reasons of a miss. No extra; tests/_features/cache_care."""
