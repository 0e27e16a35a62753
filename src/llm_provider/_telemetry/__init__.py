"""What a program can observe of its calls: log lines, waits on standard error, spans and metrics.

Data flows one way. `_calls/observation` hands an `observed_call` and its end to an `observer`, which feeds
`logs`, `spans` and `metrics`. `content` has prompts and answers for those who switch them on. `waits` tells
why calls wait, with the `reasons` of failures. `telemetry` finds OpenTelemetry's providers. Nothing here
changes a call.
"""
