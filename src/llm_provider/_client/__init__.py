"""What users call: `Client`, and the functions of the module, which are its methods on a default client.

Order: call_runner, token_counts, batch_arguments, batch_estimates, batch_methods, pickling, files, lifetime,
client, functions, model_functions.
"""
