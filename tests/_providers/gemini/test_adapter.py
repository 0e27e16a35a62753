"""What is imported before the first connection to Gemini."""

import subprocess
import sys


def test_only_an_open_connection_needs_the_sdk() -> None:
    program = """
import sys
from llm_provider._requests.request import Request
from llm_provider._requests.routing import resolve
from llm_provider._providers.registry import load
gemini = load("gemini")
gemini.encode(Request.build("gemini-3.8-flash", "Hi", {}), resolve("gemini-3.8-flash"))
gemini.decode({"promptFeedback": {"blockReason": "SAFETY"}})
gemini.map_error(ValueError("x"))
print([name for name in ("google.genai", "aiohttp", "httpx2", "pydantic", "ssl") if name in sys.modules])
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
