"""A store of answers that several machines share, behind the local store of each.

`settings` checks what the user gives, `valkey_store` speaks to a Valkey or Redis server, `access` calls a
store from threads of its own and bridges its outages, and `two_level_cache` puts it behind the local store.
"""
