"""What single hosts do differently from the standard of their wire format. No extra; tests/_features/quirks."""
