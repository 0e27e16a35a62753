"""Anthropic's Messages format, by the API reference for `POST /v1/messages` and the anthropic SDK 2.11."""
