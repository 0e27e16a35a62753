"""Progress bars of batches, in terminals and notebooks. No extra; tests/_features/progress."""
