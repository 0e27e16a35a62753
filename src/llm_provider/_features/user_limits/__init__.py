"""A user's own limits of requests and tokens a minute. No extra; tests/_features/user_limits."""
