"""What `_cache` keeps answers in: their stored form, the files, and the threads that do the work.

`_entry` is the form of an answer, `_store` the eight `_shard`s that hold them and `_disk` diskcache's view of
those; `_care`, `_miss` and `_archive` are what a user can ask of a cache; `_worker` is threads and batches.
Nothing here knows of models, providers or calls.
"""
