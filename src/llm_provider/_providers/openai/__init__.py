"""OpenAI and compatible hosts: `chat` and `responses` are the formats; `adapter` chooses between them."""
