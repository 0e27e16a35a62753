"""The command `llm-provider`.

`output` holds the exit codes and messages that all subcommands share, `parsing` the classes of click as this
program uses them, and `call_options` the options of a call. `log_file` keeps the answers of `ask`, and `logs`
prints them. `map` reads by `map_rows` and writes by `map_output`. Every other subcommand is one module.
`commands` is the tree of them, and `main` runs a command line and gives every error its exit code.
"""
