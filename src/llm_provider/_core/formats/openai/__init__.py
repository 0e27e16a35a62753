"""OpenAI and every compatible host: which of two formats a call takes, and what both formats share."""
