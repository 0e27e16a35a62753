"""What is done with a model.

`chat` and `embed` are operations. `count_tokens` and `list_models` are questions that are no calls.
"""
