"""The lifecycle of a call."""
