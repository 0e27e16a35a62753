"""Rounds of tool calls.

`loop` repeats calls until the model calls no more functions, and `runner` runs the functions.
"""
