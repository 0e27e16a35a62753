"""The server process, from its start to an answer.

`command` reads the command line. `process` runs an HTTP server (with a `certificate` for HTTPS) in front of
`application`. The application finds the provider and the wire format of a request with `routing`, reads
settings, limits and faults from `state`, and sends the answer with `delivery`. `control` is the interface by
which a :class:`~llm_provider.simulator.Simulator` controls its server.
"""
