"""`mcp`: the tools of local and remote MCP servers. Extra `mcp`; tests/_features/mcp."""
