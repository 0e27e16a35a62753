"""Logs, spans and metrics of calls. Extra `otel` for spans and metrics; tests/_features/telemetry."""
