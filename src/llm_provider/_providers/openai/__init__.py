"""OpenAI's wire formats, which compatible hosts speak as well.

In the order of imports: `text_chunk` recognises the chunks of a stream that only add text; `chat` and
`responses` are the two formats, `responses_calls` has the calls of the second, and `chat_stream` and
`responses_stream` have their streams; `adapter` has the parameters of each model family and chooses the
format.
"""
