"""Many calls: the driver of `call_many`, and the batches of the providers."""
