"""How many tokens a request has before it is sent.

`range` is a number that is not known exactly; `text`, `images` and `tokenizer` count one kind of input each;
`model_limits` knows context windows; `counting` puts them together.
"""
