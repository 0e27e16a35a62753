"""What a program can observe of its calls: log lines, waits on standard error, spans and metrics."""
