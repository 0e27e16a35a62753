"""The cost of calls, and limits on it. A module imports only modules before it in this list.

- Prices: `price_rows` (the rows of prices.csv), `cloud_names` (the names of a cloud's models by region),
  `pricing` (the cost of a call).
- Models: `model_drift` (whether another model serves than before).
- Sums: `totals` (running sums of postings), `ledger_rows`, `ledger_views`, `ledger_plot` and `ledger_file`
  (their rows, tables, figure and file), `ledger` (the class for users), `track` (sums of a `with` block).
- Limits: `balance` and `balance_file` (spent and reserved money), `budget` (the limit that a user sets).
"""
