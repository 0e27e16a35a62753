"""Rate control, retries and timeouts.

From the bottom: `timeouts`; `concurrency` has the user's limit; `state` turns objects into JSON and back;
`headers` reads rate-limit headers; `random_refusals` tells refusals at random from those of a limit;
`rate_estimator` and `window` limit the requests per second and those in flight; `controller` and `aimd`
decide when the next request may be sent, without a clock; `shared_controller` shares a controller between
processes; `retry` judges failures; `outage` finds that a provider is down; `scopes` applies a controller and
an outage on the event loop.
"""
