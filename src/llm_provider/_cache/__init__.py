"""The disk cache: `key` names a question, `storage` keeps the files, `response_cache` is what calls use."""
