"""The arguments of a call → `Request`, and the name of a model → `Target`."""
