"""What the wire formats have in common."""
