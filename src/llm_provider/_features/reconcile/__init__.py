"""The ledger against the provider's own bill. No extra; tests/_features/reconcile."""
