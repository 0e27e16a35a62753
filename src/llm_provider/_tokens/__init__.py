"""How many tokens a request has before it is sent.

Order of imports, from the bottom: `range`, `vocabularies` and `model_limits` import none of the others;
`text` and `tokenizer` import `vocabularies`; `images` imports `range`; `counting` imports all but
`tokenizer`.
"""
