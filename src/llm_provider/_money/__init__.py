"""What calls cost, and limits on it.

Prices: `price_rows`, `pricing`. Sums: `totals`; `ledger` with `ledger_rows`, `ledger_views`, `ledger_plot`,
`ledger_file`; `track`; `model_drift`. Limits: `balance`, `balance_file`, `budget`.
"""
