"""What is done with a model: the operations, and `count_tokens` and `list_models`, which are no calls."""
