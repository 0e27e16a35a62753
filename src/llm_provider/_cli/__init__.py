"""The command `llm-provider`: one module per subcommand, and `main`, which chooses between them."""
