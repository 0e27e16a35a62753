"""The cache on disk: keys, entries, databases, and the thread that writes."""
