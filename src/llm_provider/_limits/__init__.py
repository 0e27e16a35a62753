"""How fast and how long: rate control, retries and timeouts.

From the bottom: `timeouts`; `retry` judges failures; `headers` reads what providers say of their limits;
`rate_estimator`, `controller` and `aimd` decide when the next request may go, without a clock; `concurrency`
says how many at most; `scopes` applies a controller on the event loop; `shared_controller` shares one between
processes.
"""
