"""What users call: `Client`, and the functions of the module, which are its methods on a default client.

Order: answers, embed_methods, batch_methods, client, functions. The type stubs are written by `make stubs`.
"""
