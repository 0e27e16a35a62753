"""The providers' wire formats, all behind one `protocol`.

Each format is a folder. Its files have the same names everywhere: `encode` writes a request, `decode` reads a
reply, `stream` folds the events of a stream into a reply, `usage` tells what a request may use and a reply
has used, `connection` sends through the SDK, and `models` says what each family of models accepts. `encode`
is the adapter too: it has the pure parts by the names that the protocol asks for, which says what each of
them does. Where a format has more, it has `messages`, `rich_content`, `schema`, `prompt_cache`, `embeddings`,
`batches` and `files`. What a folder does not have, the format shares: `openai` is the provider of two
formats, `openai_chat` and `openai_responses`, and `litellm` takes and returns the first of them. `quirks` has
what single hosts do differently.

`transport` has the HTTP clients of the SDKs, and `shared` what formats have in common. `registry` loads the
modules of a format when the first call needs them. `model_lists` and `token_counts` have a table each, with a
row for each format that has such a list or count. But for these two, and for the names of tools, no field
name of a wire format stands outside its folder.
"""
