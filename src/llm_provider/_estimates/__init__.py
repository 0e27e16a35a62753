"""What a batch will cost, before it is sent.

Order of imports, from the bottom: `history` reads stored answers; `estimate` imports it and computes.
"""
