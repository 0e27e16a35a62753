"""How many tokens a request has before it is sent."""
