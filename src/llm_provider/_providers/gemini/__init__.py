"""Gemini's `generateContent`: `encode_contents` out, `decode` in, `connection`; `adapter` joins them."""
