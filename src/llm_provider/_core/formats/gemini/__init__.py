"""Gemini's `generateContent` format, by the API reference and the types of google-genai 3.4."""
