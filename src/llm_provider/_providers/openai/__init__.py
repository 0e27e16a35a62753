"""OpenAI's wire formats, which compatible hosts speak as well.

In the order of imports: `text_chunk` recognises the chunks of a stream that only add text; `chat` and
`responses` are the two formats, and `responses_stream` has the streams of the second; `adapter` has the
parameters of each model family and chooses the format.
"""
