"""What the user asks for, checked: parameters and messages → `Request`, model name → `Target`.

`base_url` checks servers; `api_keys` finds keys; `request` validates the arguments of a call; `routing` holds
the table of providers.
"""
