"""The way of one call: `engine` has it from top to bottom."""
