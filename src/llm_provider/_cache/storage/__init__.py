"""The files of the cache. Nothing here knows of models, providers or calls.

Order of imports, from the bottom: `entry`, `row_format`, `sharing`, `shard` (one database), `store` (all of
them), `diff`, `maintenance`, `archive`, `uncancellable`, `worker`.
"""
