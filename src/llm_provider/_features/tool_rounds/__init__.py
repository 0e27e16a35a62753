"""Tool rounds: a model calls functions and goes on. No extra; tests/_features/tool_rounds."""
