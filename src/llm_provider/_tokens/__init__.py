"""How many tokens a request has before it is sent.

Order of imports, from the bottom: `range`, `text`, `tokenizer` and `model_limits` import none of the others;
`images` imports `range`; `counting` imports all but `tokenizer`.
"""
