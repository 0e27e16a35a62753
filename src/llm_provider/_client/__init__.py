"""What users call: `Client`, and the functions of the module, which are its methods on a default client.

Order: answers, batch_arguments, embed_methods, count_methods, estimate_methods,
batch_methods, pickling, files, client, functions, model_functions.
"""
