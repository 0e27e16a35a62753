"""What a call tells those who listen: its requests, its waits and the reasons of its failures."""
