"""Anthropic's Messages format: `encode_messages` out, `decode` in; `adapter` joins them."""
