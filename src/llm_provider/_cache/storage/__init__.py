"""The files of the cache. Nothing here knows of models, providers or calls."""
