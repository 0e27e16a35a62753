"""The command `llm-provider`. No extra; tests/_features/cli."""
