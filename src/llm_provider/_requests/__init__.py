"""What the user asks for, checked: parameters and messages → `Request`, model name → `Target`.

`base_url` checks servers; `api_keys` finds keys; `request` validates the arguments of a call and
`embed_request` those of `embed`; `routing` holds the table of providers.
"""
