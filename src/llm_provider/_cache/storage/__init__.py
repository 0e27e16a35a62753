"""The files of the cache. Nothing here knows of models, providers or calls.

A module imports only modules before it in this list:

- `entry` is the stored format of an answer, `row_format` the format of a diskcache row;
- `sharing` judges who may write to a directory; `shard` reads and writes one database, `store` all of them;
- `diff` compares questions; `maintenance` verifies, prunes and explains misses; `archive` exports and
  imports;
- `uncancellable` and `worker` run disk work in threads, in batches, for threads and event loops.
"""
