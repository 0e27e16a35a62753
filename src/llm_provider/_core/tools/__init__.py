"""Tool rounds: the loop over the turns of a model, and the functions that it calls."""
