"""What users call: `Client`, and the functions of the module, which are its methods on a default client.

Order: answers, embed_methods, count_methods, batch_arguments, batch_overloads,
batch_methods, pickling, files, client, functions, model_functions.
"""
