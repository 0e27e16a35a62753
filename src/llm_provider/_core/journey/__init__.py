"""One call on its way: key, look-up, share, slot, request, answer, stored entry, result."""
