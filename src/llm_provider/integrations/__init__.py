"""Model providers for other tools, each imported only where its package is installed.

Their requests go through the cache, rate control, retries, budgets and ledger of this library.
docs/integrations.md describes the use. `conversation` holds what several of them have in common.
"""
