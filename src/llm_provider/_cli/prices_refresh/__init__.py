"""How `prices.csv` and `model_limits.csv` are brought up to date from public sources.

`quotes` is what a source says; `litellm_prices` and `genai_prices` read one source each; `merge` makes one
price of several; `refresh` and `model_limits` apply the result to the shipped files.
"""
