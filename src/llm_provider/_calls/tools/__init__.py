"""Rounds of tool calls: `loop` repeats calls until the model calls no more, `runner` runs the functions."""
