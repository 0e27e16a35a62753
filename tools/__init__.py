"""What only maintainers run: programs that write tables and pages of this repository."""
