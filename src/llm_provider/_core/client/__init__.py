"""What users call: the client, and the functions that use a shared one."""
