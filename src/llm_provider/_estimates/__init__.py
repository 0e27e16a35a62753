"""What a batch will cost, before it is sent: `estimate` computes it from stored answers, by `history`."""
