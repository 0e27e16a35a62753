"""How many tokens a request has before it is sent.

From the bottom: `range`, `vocabularies` and `model_limits`, then `text`, `tokenizer` and `images`, and
`counting`, which imports all but `tokenizer`.
"""
