"""What a batch will cost before it is sent: `history` learns from stored answers, `estimate` computes."""
