"""The command `llm-provider`: one module for each subcommand, which `commands` lists, and what they share."""
