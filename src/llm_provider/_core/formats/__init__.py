"""The wire formats of the providers, and the one transport that they share."""
