"""What a batch will cost and take, before it is sent. No extra; tests/_features/estimates."""
