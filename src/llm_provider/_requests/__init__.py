"""The arguments of a call → `Request`, and the model's name → `Target`.

`row_template` reads templates of prompts. From the bottom: `base_url` checks servers; `api_keys` finds
keys; `routing` holds the table of providers and finds the provider of a model; `tools` makes tools of
functions and classes; `attachments` are files, which `media` makes content parts of; `request` validates
the arguments of a call, `embed_request` those of `embed`. `foreign_names` and `remedies` write messages for
wrong ones. `compatible_hosts` has rows of `routing` that take a line each, and `host_routes` makes a row of
each `host` of the user's own.
"""
