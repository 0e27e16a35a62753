"""Many calls at once: `driver` says what is to be done next."""
