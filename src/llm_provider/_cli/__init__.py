"""The command `llm-provider`.

`output` holds the exit codes and messages that all subcommands share. `ask`, `estimate`, `prices` and `cache`
are one subcommand each; `prices_refresh` is `prices refresh`. `main` parses the command line and runs one of
them.
"""
