"""What the simulator keeps about the requests it has served.

`recorded_requests` keeps the last requests. `ledger` counts requests and tokens, and adds up USD by `prices`.
"""
