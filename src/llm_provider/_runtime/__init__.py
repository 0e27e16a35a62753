"""What everything else stands on: no module here knows of models, providers or money.

`frozen` makes frozen dataclasses fast; `canonical_json` makes the bytes that are hashed and sent; `leases`
are names that one process of a machine may hold; `event_loop` is where all network work runs; `exact_decimal`
adds decimals without rounding.
"""
