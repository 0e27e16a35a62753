"""What users call: `Client`, and the functions of the module, which are its methods on a default client.

Order: answers, embed_methods, batch_arguments, batch_methods, client, functions. `make stubs` writes stubs.
"""
