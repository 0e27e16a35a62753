"""Gemini's Interactions format (`POST /interactions`), by the types of google-genai 3.6."""
