"""The requests of a call: `sender` sends them one after the other."""
