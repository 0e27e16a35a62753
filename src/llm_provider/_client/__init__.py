"""What users call: `Client`, and the functions of the module, which are its methods on a default client."""
