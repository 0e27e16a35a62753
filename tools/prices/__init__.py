"""Brings `prices.csv` and `model_limits.csv` up to date: `make prices`.

`quotes` defines the prices that a source gives. `litellm_prices` and `genai_prices` read one source each.
`merge` combines the sources' prices of one model; `refresh` and `model_limits` apply the result to the two
files; `__main__` reads and writes the files and prints the changes.
"""
