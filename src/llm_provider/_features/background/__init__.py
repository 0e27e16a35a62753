"""`delivery="background"`: answers that take hours, as jobs. No extra; tests/_features/background."""
