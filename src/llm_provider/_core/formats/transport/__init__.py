"""The HTTP clients of the SDKs: proxies, certificates, limits of size, server-sent events."""
